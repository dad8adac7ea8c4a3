"""One step, in the user's words and at the user's line."""

from .._base import source


class Step:
    """A row of the step table with its operands, and what it has defined."""

    __slots__ = (
        "name", "stage", "axes", "factors", "parts", "tag", "at", "output", "readers", "tags", "value", "file",
        "line", "defined", "made", "data", "reduce",
    )  # fmt: skip

    def __init__(
        self, name, stage, axes=(), factors=(), parts=0, tag="", at=None, output=0, value=0, readers=(), tags=(),
        data=(), reduce=(),
    ):  # fmt: skip
        self.name = name
        self.stage = stage
        self.axes = axes
        self.factors = factors
        self.parts = parts
        self.tag = tag
        self.at = at  # (consumer's operation, its axis)
        self.output = output
        self.readers = readers  # stages
        self.tags = tags  # thread axes
        self.value = value
        self.file, self.line = source.caller()
        self.defined = []
        self.made = None  # the operation of the stage it defines, named by these axes of its own
        self.data, self.reduce = data, reduce

    @property
    def owner(self):
        """The stage whose loops the axes are: of a layout, the reader's."""
        return self.readers[0] if self.readers else self.stage

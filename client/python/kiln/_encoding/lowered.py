"""What lower returns: the loops as text, which can also be built."""


class Lowered(str):
    """The text of a kernel's loops. It remembers the kernel, so kiln.build takes it as well."""

    def __new__(cls, text, inputs, args, name):
        lowered = super().__new__(cls, text)
        lowered.inputs = inputs
        lowered.args = args
        lowered.name = name
        return lowered

    def astext(self, *args, **kwargs):
        """The text."""
        return str(self)

    script = astext

    def show(self, *args, **kwargs):
        """Prints the text."""
        print(self)

    def __getitem__(self, key):
        if isinstance(key, str):  # lower(...)["main"], as an IRModule is asked for its function
            if key not in ("main", self.name):
                raise KeyError(key)
            return self
        return super().__getitem__(key)

    def __getnewargs__(self):
        return str(self), None, None, self.name

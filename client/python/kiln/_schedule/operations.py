"""The operations of stages that steps have made or changed."""

from .._definitions.tensor import ComputeOp, Operation, Tensor


class StepOp(ComputeOp):
    """A stage that a step makes."""

    def __init__(self, name, axis, reduce_axis, inputs):
        super().__init__(name, axis)
        self.reduce_axis = reduce_axis
        self._inputs = inputs
        self.is_copy = False
        for each in (*axis, *reduce_axis):
            each.op = self

    def make_outputs(self, shape, dtypes):
        self._outputs = [Tensor(self, i, shape, dtype) for i, dtype in enumerate(dtypes)]

    def describe(self):
        return f"values of {', '.join(tensor.name for tensor in self._inputs)}"


class OpNow(Operation):
    """What a stage computes after a step has given its work to another one."""

    def __init__(self, origin, axis, reduce_axis, inputs):
        self.origin = origin
        self.axis = axis
        self.reduce_axis = reduce_axis
        self._now = inputs

    def __getattr__(self, name):
        return getattr(self.origin, name)

    kind = property(lambda self: self.origin.kind)
    num_outputs = property(lambda self: self.origin.num_outputs)
    outputs = property(lambda self: self.origin.outputs)
    input_tensors = property(lambda self: list(self._now))
    axes = property(lambda self: [*self.axis, *self.reduce_axis])

    def output(self, index):
        return self.origin.output(index)

    def describe(self):
        return f"values of {', '.join(tensor.name for tensor in self._now)}"


def copied_from(tensor):
    """What a cache_read, or one of a copy, is a copy of."""
    while isinstance(tensor.op, StepOp) and tensor.op.is_copy:
        tensor = tensor.op.input_tensors[0]
    return tensor


def same_tensor(a, b):
    """Whether both are one output of one operation."""
    return a.op is b.op and a.value_index == b.value_index

"""Tensor intrinsics that a program describes itself. Kiln runs no code of a client, so such an intrinsic is what its
definition says, as loops: `tensorize` by one leaves the loops as they are. Kiln's own intrinsics have names."""

from .._base.error import invalid, public, unsupported
from .._base.suggest import nearest, refuse_private
from . import define
from .tensor import Operation


class Buffer:
    """Memory as a program describes it for an intrinsic. Nothing follows from it: Kiln finds shapes, strides and alignment
    of arguments at each call, and proves or guards every access."""

    def __init__(self, shape, dtype, name, strides, elem_offset, scope):
        self.shape, self.dtype, self.name = shape, dtype, name
        self.strides, self.elem_offset, self._scope = strides, elem_offset, scope

    def scope(self):
        return self._scope

    def __getattr__(self, name):
        refuse_private(name, "Buffer")
        raise unsupported(
            "NOT_PART_OF_KILN",
            f"buffer {self.name} describes memory for an intrinsic, and has no {name}: loops are not written by hand; "
            f"write the tensors with te.compute and te.scan{nearest(name, list(vars(self)))}",
        )

    def __repr__(self):
        return f"buffer({self.name}, {self.shape}, {self.dtype})"


@public
def decl_buffer(
    shape, dtype="float32", name="buffer", data=None, strides=None, elem_offset=None, scope="global",
    data_alignment=-1, offset_factor=0, buffer_type="", axis_separators=None, span=None,
):  # fmt: skip
    """Memory, described for decl_tensor_intrin."""
    return Buffer(define.as_shape(shape, f"decl_buffer {name}"), dtype or "float32", name, strides, elem_offset, scope)


class TensorIntrin:
    """What `tensorize` takes of a program's own: a name, and the operation whose loops stand for it."""

    def __init__(self, name, op):
        self.name, self.op = name, op

    def __repr__(self):
        return f"TensorIntrin({self.name})"


@public
def decl_tensor_intrin(op, fcompute, name="tensor_intrin", binds=None, scalar_params=None, default_buffer_params=None):
    """An intrinsic that computes what `op` does. `fcompute`, which would write its code, is not called."""
    if not isinstance(op, Operation) or op.kind != "compute":
        raise invalid(
            "INTRINSIC", f"decl_tensor_intrin takes the operation of a te.compute, but got {type(op).__name__}"
        )
    return TensorIntrin(name, op)

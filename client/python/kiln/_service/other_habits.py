"""Names that arrays of torch, jax and the like have: what to write instead of each, on an array of the daemon."""

from .._base.suggest import nearest, refuse_private, unknown_name

_INSTEAD = {
    "add_": "x += y",
    "at": "x[i] = v, which changes the array",
    "backward": "te.gradient(y, [x]) before the kernel is built, or kiln.Program's gradients",
    "block_until_ready": "nothing: a call has ended when it returns",
    "clone": "x.copy()",
    "contiguous": "nothing: arrays of the daemon are contiguous",
    "cpu": "x.numpy(), or x.copyto(kiln.cpu(0))",
    "cuda": "x.copyto(kiln.cuda(0))",
    "data_ptr": "np.asarray(x), whose memory is this process's; the array's is the daemon's",
    "detach": "nothing: arrays carry no gradients",
    "double": 'x.astype("float64")',
    "expand": "np.broadcast_to(x, shape)",
    "fill_": "x[...] = value",
    "float": 'x.astype("float32")',
    "get": "x.numpy()",
    "grad": "te.gradient(y, [x]) before the kernel is built, or kiln.Program's gradients",
    "half": 'x.astype("float16")',
    "int": 'x.astype("int32")',
    "is_contiguous": "nothing: arrays of the daemon are contiguous",
    "long": 'x.astype("int64")',
    "mul_": "x *= y",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "requires_grad": "te.gradient(y, [x]) before the kernel is built, or kiln.Program's gradients",
    "sub_": "x -= y",
    "t": "x.T",
    "to": 'x.copyto(kiln.cuda(0)), or x.astype("float16")',
    "type": "x.astype(dtype)",
    "unsqueeze": "x[:, None]",
    "view": "x.reshape(shape), or x.numpy().view(dtype)",
    "zero_": "x[...] = 0",
}  # fmt: skip


class OtherHabits:
    """Answers names that an array has not."""

    __slots__ = ()

    def __getattr__(self, name):
        refuse_private(name, "NDArray")
        if name in _INSTEAD:
            raise unknown_name(f"an array of the daemon has no {name}; write {_INSTEAD[name]}")
        raise unknown_name(f"an array of the daemon has no {name}{nearest(name, dir(type(self)))}")

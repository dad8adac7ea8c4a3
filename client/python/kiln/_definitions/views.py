"""Tensors seen otherwise: transposed, cast, stretched. A view is read as a tensor is, and what reads it
computes its elements; it is no stage of its own."""

from .._expressions import arithmetic


class View:
    """`read(*indices)` gives the elements of a tensor that nothing stores."""

    __slots__ = ("name", "shape", "dtype", "_read")

    def __init__(self, name, shape, dtype, read):
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self._read = read

    @property
    def ndim(self):
        return len(self.shape)

    def __call__(self, *indices):
        return self._read(*indices)


def number(value, dtype):
    """A number as a tensor without dimensions."""
    return View(str(value), (), dtype, lambda: arithmetic.cast(dtype, value))


def cast(tensor, dtype):
    """The tensor in another type; the tensor itself where it has that type."""
    if tensor.dtype == dtype:
        return tensor
    return View(
        tensor.name, tensor.shape, dtype, lambda *indices: arithmetic.cast(dtype, tensor(*indices))
    )


def permuted(tensor, order):
    """Dimension d of the view is dimension order[d] of the tensor."""
    order = list(order)
    if order == list(range(tensor.ndim)):
        return tensor

    def read(*indices):
        place = dict(zip(order, indices))
        return tensor(*(place[d] for d in range(tensor.ndim)))

    return View(tensor.name, [tensor.shape[d] for d in order], tensor.dtype, read)


def moved(tensor, source, destination):
    """As numpy.moveaxis of one dimension."""
    order = [d for d in range(tensor.ndim) if d != source % tensor.ndim]
    order.insert(destination % tensor.ndim, source % tensor.ndim)
    return permuted(tensor, order)


def expanded(tensor, positions, ndim):
    """The tensor's dimensions at these positions of `ndim`; the others have extent 1."""
    shape = [1] * ndim
    for position, size in zip(positions, tensor.shape):
        shape[position] = size
    return View(
        tensor.name, shape, tensor.dtype, lambda *indices: tensor(*(indices[p] for p in positions))
    )

"""Arrays that live on a device of the daemon."""

import html
import math

import numpy as np

from .._base import dtypes
from .._base.error import invalid, public
from ..v1 import service_pb2
from .connection import connection_or_default
from .device import Device, cpu, device as device_of
from .numpy_habits import NumpyHabits
from .other_habits import OtherHabits


class NDArray(NumpyHabits, OtherHabits):
    """A tensor of the daemon; it is freed when the last reference here is gone."""

    __slots__ = ("_connection", "_id", "_wire", "_dtype", "nbytes", "shape", "device", "__weakref__")
    __array_priority__ = 1

    def __init__(self, connection, tensor_id, shape, dtype, device):
        self._connection = connection
        self._id = tensor_id
        # The bytes of this argument in a RunRequest: calls join such pieces.
        self._wire = service_pb2.RunRequest(
            arguments=[service_pb2.Argument(tensor=tensor_id)]
        ).SerializeToString()
        self.shape = shape
        self._dtype = dtype
        self.device = device
        self.nbytes = math.prod(shape) * dtypes.NUMPY[dtype].itemsize

    @property
    def dtype(self):
        return dtypes.NUMPY[self._dtype]

    @property
    def ctx(self):
        return self.device

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @public
    def numpy(self):
        """The contents as a numpy array."""
        return self._connection.download(self._id)

    asnumpy = numpy

    @public
    def copyfrom(self, source):
        """Overwrites the contents; `source` is anything numpy takes, of the same shape."""
        source = source if isinstance(source, NDArray) else np.asarray(source)
        if source.shape != self.shape:
            raise invalid("SHAPE", f"cannot copy shape {source.shape} into an array of shape {self.shape}")
        if isinstance(source, NDArray):
            if source._connection is self._connection and source._dtype == self._dtype:
                self._connection.copy(source._id, into=self._id)
                return self
            source = source.numpy()
        values = source.astype(self.dtype)
        self._connection.upload(values, self.device.wire_name, into=self._id)
        return self

    def copy(self, order="C"):
        """A new array of the daemon with the same contents, on the same device."""
        return array_on(self._connection, self, self.device)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def same_as(self, other):
        """Whether both are the same array."""
        return self is other

    @public
    def copyto(self, target, mem_scope=None):
        """Copies to another NDArray, to a numpy array, or to a device, where a new array is made."""
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        if isinstance(target, np.ndarray):
            np.copyto(target, self.numpy())
            return target
        if isinstance(target, Device):
            return array_on(self._connection, self, target)
        raise invalid(
            "COPY_TARGET",
            f"copyto takes an NDArray, a numpy array or a device, but got {type(target).__name__}",
        )

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **options):
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # the exported copy is in host memory

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        values = np.array2string(self.numpy(), separator=", ")
        return f"NDArray({values}, shape={self.shape}, dtype={self.dtype}, device={self.device})"

    def _repr_html_(self):
        """For notebooks: a table of a matrix or a vector, with its middle left out where it is large; else the text."""
        caption = html.escape(f"{self.dtype}{list(self.shape)} on {self.device}")
        if not 1 <= self.ndim <= 2:
            return f"<pre>{html.escape(repr(self))}</pre>"
        values = np.atleast_2d(self.numpy())
        rows, columns = (_shown_places(size) for size in values.shape)
        cell = lambda i, j: "&#8230;" if i is None or j is None else html.escape(f"{values[i, j]:.6g}")  # noqa: E731
        body = "".join(f"<tr>{''.join(f'<td>{cell(i, j)}</td>' for j in columns)}</tr>" for i in rows)
        return f"<table><caption>{caption}</caption>{body}</table>"

    def __reduce__(self):
        raise TypeError("an NDArray lives on the daemon and cannot be pickled; pickle its .numpy()")

    def __del__(self):
        # No call from here: finalizers run anywhere. The connection frees in batches.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.forget(self._id, getattr(self, "nbytes", 0))


def _shown_places(size, most=10):
    """Indices of a dimension; None where some are left out."""
    if size <= most:
        return list(range(size))
    half = most // 2
    return [*range(half), None, *range(size - half, size)]


def as_numpy(value, what, wanted=None):
    """`value` as a compact little-endian numpy array of a type that Kiln has, and the type's name. Where bfloat16 is
    wanted, uint16 holds its bits, as classic programs have them."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        value = np.from_dlpack(value)
    if isinstance(value, np.ma.MaskedArray):
        raise invalid(
            "ARGUMENT_TYPE",
            f"{what} is a masked array, whose mask a kernel does not know; fill it first, as in x.filled(0)",
        )
    values = np.asarray(value)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    if wanted == "bfloat16" and values.dtype == np.uint16:
        values = values.view(dtypes.NUMPY[wanted])
    return np.ascontiguousarray(values).reshape(values.shape), dtypes.dtype_name(values.dtype, what)


def array_on(connection, value, device, by_digest=False):
    """A new NDArray with the contents of `value`."""
    device = device_of(device)
    if isinstance(value, NDArray):
        if value._connection is connection:
            tensor = connection.copy(value._id, device.wire_name)
            return NDArray(connection, tensor, value.shape, value._dtype, device)
        value = value.numpy()
    values, dtype = as_numpy(value, "nd.array")
    tensor = connection.upload(values, device.wire_name, by_digest=by_digest)
    return NDArray(connection, tensor, values.shape, dtype, device)


def empty_on(connection, shape, dtype, device):
    """A new NDArray of zeros."""
    shape = tuple(int(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    dtype = dtypes.dtype_name(dtype, "nd.empty")
    if any(size < 0 for size in shape):
        raise invalid("SHAPE", f"nd.empty: the shape {shape} has a negative dimension")
    device = device_of(device)
    tensor = connection.allocate(shape, dtype, device.wire_name)
    return NDArray(connection, tensor, shape, dtype, device)


@public
def array(arr, device=None, mem_scope=None, *, ctx=None, by_digest=False, connection=None):
    """A new array with the contents of anything numpy takes, on a device (the CPU by default). With `by_digest` a daemon elsewhere
    is told their SHA-256 first, and is sent the contents only where no array of this user's there has them."""
    return array_on(connection_or_default(connection), arr, device or ctx or cpu(0), by_digest)


@public
def full(shape, fill_value, dtype="float32", device=None, *, connection=None):
    """A new array of one value."""
    dtype = dtypes.dtype_name(dtype, "nd.full")
    return array(np.full(shape, fill_value, dtypes.NUMPY[dtype]), device, connection=connection)


@public
def ones(shape, dtype="float32", device=None, *, connection=None):
    """A new array of ones."""
    return full(shape, 1, dtype, device, connection=connection)


@public
def empty(shape, dtype="float32", device=None, mem_scope=None, *, ctx=None, connection=None):
    """A new array of zeros."""
    return empty_on(connection_or_default(connection), shape, dtype, device or ctx or cpu(0))

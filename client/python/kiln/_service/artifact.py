"""Compiled kernels in files: written by the daemon that has them, run in this process without one."""

import ctypes
import os
import weakref

import numpy as np

from .._base import dtypes
from .._base.error import InvalidArgument, called, invalid, public
from .._expressions.arithmetic import as_integer
from ..v1 import artifact_pb2 as wire
from . import runtime_library
from .call import count_message


def export(function, path):
    """Writes the machine code of a built function to `path`, whole or not at all."""
    request = wire.ExportRequest(kernel_id=function._kernel_id)
    file = function._connection.call("ArtifactService/Export", request, wire.ExportResponse).file
    part = f"{os.fspath(path)}.part"
    try:
        with open(part, "wb") as out:
            out.write(file)
        os.replace(part, path)
    except OSError as error:
        raise invalid("ARTIFACT_FILE", f"cannot write the artifact {path}: {error.strerror}") from None


@public
def load_artifact(path, *, threads=0, device=None):
    """A compiled kernel of a file (`kiln compile -o`, `f.export_artifact`), as a function of numpy arrays that runs in this
    process: no daemon is asked, and none is started. The file holds machine code: load what you trust as you trust
    a program.

    `threads` is how many share its parallel loops (0: as many as this process may use); `device` the GPU for a kernel
    for CUDA, as `kiln.cuda(1)`.
    """
    return ArtifactFunction(os.fspath(path), threads, device.index if device is not None else 0)


class ArtifactFunction:
    """A compiled kernel of a file. Called with all arguments it writes into the outputs among them; called with the
    inputs alone it returns a numpy array, or a tuple of them in argument order. Several threads may call it."""

    def __init__(self, path, threads, gpu):
        self._library = library = runtime_library.library()
        self._handle = library.kiln_artifact_load(os.fsencode(path), threads, gpu)
        if not self._handle:
            runtime_library.fail()
        weakref.finalize(self, library.kiln_artifact_free, self._handle)
        self.entry_name = library.kiln_artifact_name(self._handle).decode()
        self.target = library.kiln_artifact_target(self._handle).decode()
        self.arch = library.kiln_artifact_arch(self._handle).decode()
        count = library.kiln_artifact_parameters(self._handle)
        self._parameters = [library.kiln_artifact_parameter(self._handle, i) for i in range(count)]
        self._names = [p.name.decode() for p in self._parameters]
        self._types = [dtypes.NUMPY[dtypes.NAME[p.dtype]] for p in self._parameters]
        self._outputs = [i for i, p in enumerate(self._parameters) if p.is_output]
        count = library.kiln_artifact_sizes(self._handle)
        self._sizes = [library.kiln_artifact_size(self._handle, i).decode() for i in range(count)]
        self.seconds = 0.0  # that the kernel of the last call took

    @public
    def __call__(self, *args, **named):
        given, sizes = self._placed(args, named)
        is_new = all(given[i] is None for i in self._outputs)
        arrays = [self._array(i, value) for i, value in enumerate(given)]
        sizes = (runtime_library.Size * len(sizes))(*((name.encode(), value) for name, value in sizes.items()))
        if is_new and self._outputs:
            for i, shape in enumerate(self._shapes(arrays, sizes)):
                if self._parameters[i].is_output:
                    arrays[i] = np.empty(shape, self._types[i])
        seconds = ctypes.c_double()
        tensors, _kept = self._tensors(arrays)
        if self._library.kiln_artifact_call(self._handle, tensors, len(tensors), sizes, len(sizes), seconds):
            runtime_library.fail()
        self.seconds = seconds.value
        if not is_new:
            return None
        results = tuple(arrays[i] for i in self._outputs)
        return results[0] if len(results) == 1 else results

    def _placed(self, args, named):
        """What is given for each parameter (None: nothing), and the sizes."""
        given = [None] * len(self._parameters)
        places = list(range(len(given)))
        if len(args) + len(named.keys() & set(self._names)) == len(given) - len(self._outputs):
            places = [i for i in places if i not in self._outputs]
        if len(args) > len(places):
            raise InvalidArgument(count_message(self.entry_name, self._names, len(args)), "ARGUMENT_COUNT")
        for place, value in zip(places, args):
            given[place] = value
        sizes = {}
        for name, value in named.items():
            if name in self._names and given[self._names.index(name)] is None:
                given[self._names.index(name)] = value
            else:
                sizes[name] = self._size(name, value)
        missing = [i for i, value in enumerate(given) if value is None]
        if missing and missing != self._outputs:
            raise InvalidArgument(
                count_message(self.entry_name, self._names, len(given) - len(missing)), "ARGUMENT_COUNT"
            )
        return given, sizes

    def _size(self, name, value):
        try:
            return as_integer(value)
        except TypeError:
            raise invalid(
                "ARGUMENT_TYPE", f"size {name} of {called(self.entry_name)} is {value!r}, but must be an integer"
            ) from None

    def _array(self, place, value):
        """Memory for an argument; None for an output that is to be made."""
        if value is None:
            return None
        is_output = self._parameters[place].is_output
        if is_output and not (isinstance(value, np.ndarray) and value.flags.writeable):
            raise invalid(
                "ARGUMENT_TYPE",
                f"argument {self._names[place]} of {called(self.entry_name)} is written, so it must be a numpy array that "
                "may be",
            )
        if isinstance(value, (int, float, bool, list, tuple)):
            value = np.array(value, self._types[place])
        array = np.asarray(value)
        if all(stride % array.itemsize == 0 for stride in array.strides) and array.flags.aligned:
            return array
        if is_output:
            raise invalid(
                "ARGUMENT_STRIDES",
                f"argument {self._names[place]} of {called(self.entry_name)} has elements that do not lie at multiples of "
                "their size; pass an array of your own",
            )
        return np.ascontiguousarray(array)

    def _tensors(self, arrays):
        """The arrays as the library takes them, and what has to live as long."""
        kept = []
        tensors = (runtime_library.Tensor * len(arrays))()
        for tensor, array in zip(tensors, arrays):
            if array is None:
                tensor.rank = -1
                continue
            numbers = (ctypes.c_int64 * max(array.ndim, 1))
            shape = numbers(*array.shape)
            strides = numbers(*(stride // array.itemsize for stride in array.strides))
            kept += [shape, strides, array]
            tensor.data = array.ctypes.data
            tensor.shape, tensor.strides = shape, strides
            tensor.rank = array.ndim
            tensor.dtype = dtypes.NUMBER[dtypes.dtype_name(array.dtype, f"an argument of {called(self.entry_name)}")]
        return tensors, kept

    def _shapes(self, arrays, sizes):
        tensors, _kept = self._tensors(arrays)
        flat = (ctypes.c_int64 * (sum(p.rank for p in self._parameters) + 1))()
        if self._library.kiln_artifact_shapes(self._handle, tensors, len(tensors), sizes, len(sizes), flat):
            runtime_library.fail()
        at = 0
        for parameter in self._parameters:
            yield tuple(flat[at : at + parameter.rank])
            at += parameter.rank

    def __repr__(self):
        parameters = ", ".join(
            f"{name}: {dtypes.NAME[p.dtype]}[{p.shape.decode()}]" for name, p in zip(self._names, self._parameters)
        )
        return f"ArtifactFunction {self.entry_name}({parameters}) for {self.target} ({self.arch})"

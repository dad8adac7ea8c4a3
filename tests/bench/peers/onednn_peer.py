"""oneDNN's primitives, called through its C interface. Arrays are plain outside; the reorders inside are measured too.

The library is that of the PyPI package onednn-cpu-gomp, or version 3 of the system's.
"""

import ctypes
import ctypes.util
import pathlib
import sys
from functools import partial

import numpy as np

# Of dnnl_types.h.
_CPU, _F32, _ANY, _INFERENCE, _IN_ORDER = 1, 3, 1, 96, 1
_CONVOLUTION, _GELU_TANH, _MAX, _SUM, _SOFTMAX = 3, 43, 0x2FFF2, 0x2FFF4, 0x30000
_SCALE_AND_SHIFT = 6
_SRC_MD, _WEIGHTS_MD, _DST_MD = 129, 131, 133
_SRC, _DST, _WEIGHTS, _SCALE, _SHIFT = 1, 17, 33, 51, 52
_ALLOCATE = ctypes.c_void_p(-1)

Handle = ctypes.c_void_p


class _Argument(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("memory", Handle)]


def _library():
    installed = pathlib.Path(sys.prefix) / "lib" / "libdnnl.so.3"
    path = str(installed) if installed.exists() else ctypes.util.find_library("dnnl")
    if path is None:
        raise ImportError("there is no libdnnl; pip install onednn-cpu-gomp brings one")
    library = ctypes.CDLL(path)
    library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
    if library.dnnl_version()[0] != 3:
        raise ImportError(f"{path} is version {library.dnnl_version()[0]} of oneDNN; this needs version 3")
    library.dnnl_primitive_desc_query_md.restype = Handle
    return library


def _numbers(values):
    return (ctypes.c_int64 * 12)(*values)


class Peer:
    def __init__(self, threads):
        self.library = _library()  # OMP_NUM_THREADS says how many threads
        self.engine = self.made("engine_create", _CPU, ctypes.c_size_t(0))
        self.stream = self.made("stream_create", self.engine, _IN_ORDER)
        self.steps, self.kept = [], []

    def get(self, result):
        return result

    # The C interface.

    def made(self, function, *arguments):
        """What a function of the library makes, which is always its first argument."""
        handle = Handle()
        status = getattr(self.library, f"dnnl_{function}")(ctypes.byref(handle), *arguments)
        if status:
            raise RuntimeError(f"dnnl_{function} answers {status}")
        return handle

    def layout(self, array):
        """The array's shape as it lies in memory, strides and all."""
        strides = _numbers(stride // 4 for stride in array.strides)
        return self.made("memory_desc_create_with_strides", array.ndim, _numbers(array.shape), _F32, strides)

    def any_layout(self, array):
        return self.made("memory_desc_create_with_tag", array.ndim, _numbers(array.shape), _F32, _ANY)

    def memory(self, array):
        self.kept.append(array)
        return self.made("memory_create", self.layout(array), self.engine, Handle(array.ctypes.data))

    def described(self, operator, *arguments):
        return self.made(f"{operator}_primitive_desc_create", *arguments, None)

    def step(self, description, **memories):
        """Adds a primitive to what a run does."""
        indices = {"src": _SRC, "dst": _DST, "weights": _WEIGHTS, "scale": _SCALE, "shift": _SHIFT}
        arguments = [_Argument(indices[name], memory) for name, memory in memories.items()]
        primitive = self.made("primitive_create", description)
        self.steps.append((primitive, self.stream, len(arguments), (_Argument * len(arguments))(*arguments)))

    def reorder(self, source, source_layout, target, target_layout):
        engine = self.engine
        description = self.described("reorder", source_layout, engine, target_layout, engine)
        self.step(description, src=source, dst=target)

    def runner(self, out):
        steps, kept = self.steps, self.kept
        self.steps, self.kept = [], []
        execute, wait = self.library.dnnl_primitive_execute, partial(self.library.dnnl_stream_wait, self.stream)

        def run():
            for step in steps:
                execute(*step)
            wait()
            return out

        run.kept = kept
        return run

    # The operators.

    def matmul(self, a, b, a_transposed, b_transposed):
        a = a.swapaxes(-1, -2) if a_transposed else a
        b = b.swapaxes(-1, -2) if b_transposed else b
        out = np.empty((*a.shape[:-1], b.shape[-1]), "float32")
        description = self.described(
            "matmul", self.engine, self.layout(a), self.layout(b), None, self.layout(out)
        )
        self.step(description, src=self.memory(a), weights=self.memory(b), dst=self.memory(out))
        return self.runner(out)

    def conv2d(self, data, weight, stride, padding, groups):
        sizes = [(e + 2 * padding - k) // stride + 1 for e, k in zip(data.shape[2:], weight.shape[2:])]
        out = np.empty((data.shape[0], weight.shape[0], *sizes), "float32")
        if groups > 1:
            weight = weight.reshape(groups, -1, *weight.shape[1:])
        pads = _numbers([padding] * 2)
        description = self.described(
            "convolution_forward", self.engine, _INFERENCE, _CONVOLUTION, self.any_layout(data),
            self.any_layout(weight), None, self.any_layout(out), _numbers([stride] * 2), _numbers([0, 0]), pads, pads,
        )  # fmt: skip
        self.packed(description, {"src": (data, _SRC_MD), "weights": (weight, _WEIGHTS_MD)}, (out, _DST_MD))
        return self.runner(out)

    def packed(self, description, inputs, output):
        """A step whose primitive chose layouts of its own: its inputs are reordered before it, its output after."""

        def chosen(array, query):
            layout = Handle(self.library.dnnl_primitive_desc_query_md(description, query, 0))
            plain, memory = self.layout(array), self.memory(array)
            if self.library.dnnl_memory_desc_equal(layout, plain):
                return memory, None
            return self.made("memory_create", layout, self.engine, _ALLOCATE), (memory, plain, layout)

        memories = {}
        for name, (array, query) in inputs.items():
            memories[name], turned = chosen(array, query)
            if turned:
                plain_memory, plain, layout = turned
                self.reorder(plain_memory, plain, memories[name], layout)
        memory, turned = chosen(*output)
        self.step(description, **memories, dst=memory)
        if turned:
            plain_memory, plain, layout = turned
            self.reorder(memory, layout, plain_memory, plain)

    def pointwise(self, operator, x, out, *arguments, **memories):
        """A primitive from one array to another, both plain."""
        description = self.described(operator, self.engine, *arguments)
        self.step(description, src=self.memory(x), **memories, dst=self.memory(out))
        return self.runner(out)

    def softmax(self, x):
        layout = self.layout(x)
        return self.pointwise("softmax_forward", x, np.empty_like(x), _INFERENCE, _SOFTMAX, layout, layout, 1)

    def layer_norm(self, x, gamma, beta):
        layout, epsilon = self.layout(x), ctypes.c_float(1e-5)
        return self.pointwise(
            "layer_normalization_forward", x, np.empty_like(x), _INFERENCE, layout, layout, None, epsilon,
            _SCALE_AND_SHIFT, scale=self.memory(gamma), shift=self.memory(beta),
        )  # fmt: skip

    def gelu(self, x):
        layout, zero = self.layout(x), ctypes.c_float(0)
        return self.pointwise(
            "eltwise_forward", x, np.empty_like(x), _INFERENCE, _GELU_TANH, layout, layout, zero, zero
        )

    def transpose(self, x):
        out = np.empty(x.shape[::-1], "float32")
        turned = out.T  # the same numbers in the order of x
        self.reorder(self.memory(x), self.layout(x), self.memory(turned), self.layout(turned))
        return self.runner(out)

    def reduced(self, algorithm, x, axis):
        if axis == 0:
            return None  # its reference code, hundreds of times slower
        out = np.empty(x.shape[1 - axis], "float32")
        kept = np.expand_dims(out, axis)
        description = self.described(
            "reduction", self.engine, algorithm, self.layout(x), self.layout(kept), ctypes.c_float(0), ctypes.c_float(0)
        )
        self.step(description, src=self.memory(x), dst=self.memory(kept))
        return self.runner(out)

    def sum(self, x, axis):
        return self.reduced(_SUM, x, axis)

    def max(self, x, axis):
        return self.reduced(_MAX, x, axis)

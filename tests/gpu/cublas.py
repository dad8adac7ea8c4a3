"""Products by cuBLAS, called through its C interface: hosts have the library more often than torch."""

import ctypes


class Refused(Exception):
    """The library, or the driver, is not here, or answers with an error."""


def _library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Refused(f"there is no {names[0]}")


def _check(what, result):
    if result != 0:
        raise Refused(f"{what}: {result}")


def matmul(size):
    """A function that times one float32 product on the first GPU, by its clock."""
    cuda = _library("libcuda.so.1")
    blas = _library("libcublas.so.13", "libcublas.so.12")
    _check("cuInit", cuda.cuInit(0))
    context, device = ctypes.c_void_p(), ctypes.c_int()
    _check("cuDeviceGet", cuda.cuDeviceGet(ctypes.byref(device), 0))
    _check("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _check("cuCtxSetCurrent", cuda.cuCtxSetCurrent(context))
    handle = ctypes.c_void_p()
    _check("cublasCreate", blas.cublasCreate_v2(ctypes.byref(handle)))
    places = []
    for _ in range(3):
        place = ctypes.c_uint64()
        _check("cuMemAlloc", cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4 * size * size)))
        # 1.0f, since products of zeros take less power, and so less time.
        _check("cuMemsetD32", cuda.cuMemsetD32_v2(place, 0x3F800000, ctypes.c_size_t(size * size)))
        places.append(ctypes.c_void_p(place.value))
    begin, end = ctypes.c_void_p(), ctypes.c_void_p()
    for event in (begin, end):
        _check("cuEventCreate", cuda.cuEventCreate(ctypes.byref(event), 0))
    one, zero, none = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_void_p()

    def once():
        a, b, c = places
        _check("cuEventRecord", cuda.cuEventRecord(begin, none))
        _check("cublasSgemm", blas.cublasSgemm_v2(handle, 0, 0, size, size, size, ctypes.byref(one), a, size, b, size,
                                                  ctypes.byref(zero), c, size))  # fmt: skip
        _check("cuEventRecord", cuda.cuEventRecord(end, none))
        _check("cuEventSynchronize", cuda.cuEventSynchronize(end))
        milliseconds = ctypes.c_float()
        _check("cuEventElapsedTime", cuda.cuEventElapsedTime(ctypes.byref(milliseconds), begin, end))
        return milliseconds.value * 1e-3

    once()
    return once

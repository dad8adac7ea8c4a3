"""Memory between this process and a daemon on the same host.

An array goes there as a memfd sealed against any change, which the daemon maps; what the daemon shows comes as a memfd
that cannot be written, mapped here so that a write makes a copy of the page (MAP_PRIVATE).
"""

import errno
import ctypes
import functools
import mmap
import os

import numpy as np

_HUGE_PAGE = 2 << 20
_MADV_COLLAPSE = 25  # Linux 6.1
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000
_PROT_NONE = 0


@functools.lru_cache(maxsize=None)
def _libc():
    libc = ctypes.CDLL(None, use_errno=True)
    number, address = ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype = address
    libc.mmap.argtypes = [address, ctypes.c_size_t, number, number, number, ctypes.c_long]
    libc.munmap.argtypes = [address, ctypes.c_size_t]
    libc.madvise.argtypes = [address, ctypes.c_size_t, number]
    return libc


def _mmap(address, size, protection, flags, fd):
    place = _libc().mmap(address, size, protection, flags, fd, 0)
    if place == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return place


def _aligned_place(size):
    """Reserved addresses that begin at a multiple of a huge page, so that such pages can be mapped there."""
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    place = _mmap(None, size + _HUGE_PAGE, _PROT_NONE, anonymous, -1)
    before = -place % _HUGE_PAGE
    if before:
        _libc().munmap(place, before)
    end = place + before + -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    if place + size + _HUGE_PAGE > end:
        _libc().munmap(end, place + size + _HUGE_PAGE - end)
    return place + before


class _Mapping:
    """A mapping of the first `size` bytes of a memfd, as numpy takes it; it lives as long as arrays over it."""

    def __init__(self, fd, size, flags):
        place, fixed = None, 0
        if size >= _HUGE_PAGE:
            place, fixed = _aligned_place(size), _MAP_FIXED
        self._size = size
        self._address = _mmap(place, size, mmap.PROT_READ | mmap.PROT_WRITE, flags | fixed, fd)
        self.__array_interface__ = {"data": (self._address, False), "shape": (size,), "typestr": "|u1", "version": 3}

    def use_huge_pages(self):
        whole = self._size // _HUGE_PAGE * _HUGE_PAGE
        if whole:
            np.asarray(self)[:whole:_HUGE_PAGE] = 0  # only what has some memory already is taken together
            _libc().madvise(self._address, whole, _MADV_COLLAPSE)

    def __del__(self, munmap=None):
        if hasattr(self, "_address"):
            _libc().munmap(self._address, self._size)


def sealed_copy(data):
    """A memfd with the bytes of a contiguous array, which nobody can change any more."""
    import fcntl

    fd = os.memfd_create("kiln-array", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, data.size)
        if data.size >= _HUGE_PAGE:
            mapping = _Mapping(fd, data.size, mmap.MAP_SHARED)
            mapping.use_huge_pages()
            np.copyto(np.asarray(mapping), data)
            del mapping  # memory that is mapped for writing cannot be sealed
        else:
            os.pwrite(fd, data, 0)
        size_seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        try:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, size_seals | fcntl.F_SEAL_WRITE)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # The system holds a page of it for a moment; what can be written to, the daemon copies.
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, size_seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


def shown(fd, size):
    """The first bytes of a memfd that the daemon sent, as an array of this process's own."""
    return np.asarray(_Mapping(fd, size, mmap.MAP_PRIVATE))

"""libkiln_runtime, which runs compiled kernels in this process, through ctypes: what kiln/runtime.h declares."""

import ctypes
import functools
import importlib.util
import os
import pathlib
import shutil
import sys

from .._base import error as errors
from .._base import source
from .._version import VERSION

_NAME = "libkiln_runtime.so"
_FOLDERS = ("lib", "lib/x86_64-linux-gnu", "lib64")  # of an installation


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class Parameter(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("shape", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("is_output", ctypes.c_int32),
    ]


class _LastError(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char_p), ("reason", ctypes.c_char_p), ("kind", ctypes.c_char_p)]


_ARTIFACT = ctypes.c_void_p
_CALL = [_ARTIFACT, ctypes.POINTER(Tensor), ctypes.c_int32, ctypes.POINTER(Size), ctypes.c_int32]
_FUNCTIONS = {
    "kiln_runtime_error": (_LastError, []),
    "kiln_runtime_version": (ctypes.c_char_p, []),
    "kiln_artifact_load": (_ARTIFACT, [ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32]),
    "kiln_artifact_free": (None, [_ARTIFACT]),
    "kiln_artifact_name": (ctypes.c_char_p, [_ARTIFACT]),
    "kiln_artifact_target": (ctypes.c_char_p, [_ARTIFACT]),
    "kiln_artifact_arch": (ctypes.c_char_p, [_ARTIFACT]),
    "kiln_artifact_parameters": (ctypes.c_int32, [_ARTIFACT]),
    "kiln_artifact_parameter": (Parameter, [_ARTIFACT, ctypes.c_int32]),
    "kiln_artifact_sizes": (ctypes.c_int32, [_ARTIFACT]),
    "kiln_artifact_size": (ctypes.c_char_p, [_ARTIFACT, ctypes.c_int32]),
    "kiln_artifact_shapes": (ctypes.c_int32, [*_CALL, ctypes.POINTER(ctypes.c_int64)]),
    "kiln_artifact_call": (ctypes.c_int32, [*_CALL, ctypes.POINTER(ctypes.c_double)]),
}


@functools.lru_cache(maxsize=1)
def library():
    """The library with its functions declared. Raises Unavailable NO_RUNTIME where there is none."""
    if not sys.platform.startswith("linux"):
        raise errors.Unavailable("compiled kernels run on Linux alone: build this one with kiln.build", "NO_RUNTIME")
    path = _find()
    try:
        found = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise errors.Unavailable(f"the library {path} cannot be loaded: {error}", "NO_RUNTIME") from None
    version = found.kiln_runtime_version().decode()
    if version != VERSION:
        raise errors.Unavailable(
            f"the library {path} has version {version}, but this client {VERSION}: install the same of both, or name "
            "another library in KILN_RUNTIME",
            "NO_RUNTIME",
        )
    return found


def fail():
    """Raises what the last function of this thread ran into."""
    last = library().kiln_runtime_error()
    message, reason, kind = (text.decode(errors="replace") for text in (last.message, last.reason, last.kind))
    raise getattr(errors, kind, errors.Internal)(message, reason, (), *source.caller())


def _find():
    named = os.environ.get("KILN_RUNTIME")
    if named:
        candidates = [pathlib.Path(named)]  # whoever names a library does not want another one
    else:
        candidates = [prefix / folder / _NAME for prefix in _prefixes() for folder in _FOLDERS]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    looked_at = [f"$KILN_RUNTIME ({named or 'not set'})"]
    looked_at += [] if named else ["the Python package kiln-daemon", "beside $KILN_DAEMON", "beside kiln and kilnd on PATH"]
    raise errors.Unavailable(
        f"there is no {_NAME}, which runs compiled kernels: looked at {', '.join(looked_at)}; install Kiln, or name the "
        "library in KILN_RUNTIME",
        "NO_RUNTIME",
    )


def _prefixes():
    """Folders that a bin and a lib of Kiln may lie in, in order."""
    package = importlib.util.find_spec("kiln_daemon")
    if package is not None and package.origin:
        yield pathlib.Path(package.origin).parent
    for program in (os.environ.get("KILN_DAEMON"), shutil.which("kiln"), shutil.which("kilnd")):
        if program:
            yield pathlib.Path(os.path.realpath(program)).parent.parent

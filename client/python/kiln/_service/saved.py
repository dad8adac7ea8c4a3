"""Functions in files: what was built, as a definition, never as machine code.

So a file may come from anyone and works with any daemon, which compiles it or has it in its cache.
"""

import hashlib
import os

from .._base.error import invalid
from ..v1 import service_pb2 as wire

_FORMAT = "kiln module 1"


def save(path, functions):
    """Writes functions to `path`, whole or not at all."""
    module = wire.SavedModule(format=_FORMAT)
    for function in functions:
        request = function._request.SerializeToString(deterministic=True)
        module.kernels.add(
            request=request,
            sha256=hashlib.sha256(request).digest(),
            arguments=function._argument_sizes,
        )
    part = f"{os.fspath(path)}.part"
    try:
        with open(part, "wb") as file:
            file.write(module.SerializeToString())
        os.replace(part, path)
    except OSError as error:
        raise invalid("MODULE_FILE", f"cannot write the module {path}: {error.strerror}") from None


def read(path):
    """The functions in a file: the request of each, and where sizes stand among its arguments."""
    try:
        with open(path, "rb") as file:
            module = wire.SavedModule.FromString(file.read())
    except OSError as error:
        raise invalid("MODULE_FILE", f"cannot read the module {path}: {error.strerror}") from None
    except Exception:  # what protobuf raises depends on its implementation
        module = wire.SavedModule()
    if not module.format.startswith("kiln module"):
        raise invalid("MODULE_FILE", f"{path} is no module that export_library of Kiln saved")
    if module.format != _FORMAT:
        raise invalid(
            "MODULE_FILE", f"{path} was saved by another version of Kiln ({module.format}); build it again"
        )
    for kernel in module.kernels:
        if hashlib.sha256(kernel.request).digest() != kernel.sha256:
            raise invalid("MODULE_FILE", f"the module {path} is damaged; build it again")
    try:
        return [(wire.CompileRequest.FromString(k.request), list(k.arguments)) for k in module.kernels]
    except Exception:
        raise invalid("MODULE_FILE", f"the module {path} is damaged; build it again") from None

"""Linking, of which nothing is left: a saved function is a file of its own."""

import os
import shutil

from .._base.error import invalid, public


@public
def create_shared(output, objects, options=None, cc=None):
    """Copies a saved function to `output`, where programs expect the library they linked."""
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    if len(objects) != 1:
        raise invalid(
            "MODULE_FILE",
            f"create_shared was given {len(objects)} files; save each function with export_library, and "
            "load each with kiln.load_module",
        )
    try:
        shutil.copyfile(objects[0], output)
    except OSError as error:
        raise invalid("MODULE_FILE", f"cannot copy the module {objects[0]}: {error.strerror}") from None

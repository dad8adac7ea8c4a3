"""Functions from files, compiled anew."""

import os

from .._base.error import public
from . import saved
from .connection import connection_or_default
from .function import Function, Library


@public
def load_module(path, fmt="", *, connection=None):
    """The function that export_library saved, compiled for the daemon at hand, or from its cache; a Library
    where it saved several."""
    connection = connection_or_default(connection)
    functions = [Function(connection, request, sizes) for request, sizes in saved.read(os.fspath(path))]
    return functions[0] if len(functions) == 1 else Library(functions)

"""Names that were not found: the nearest one known, and modules that answer with it."""

import difflib

from . import source
from .error import InvalidArgument


class UnknownName(InvalidArgument, AttributeError):
    """A name that an object or a module does not have."""


UnknownName.__module__ = "kiln"


def unknown_name(message):
    """An UnknownName at the user's line."""
    file, line = source.caller()
    return UnknownName(message, "UNKNOWN_NAME", (), file, line)


def nearest(name, known):
    """`; did you mean exp`, where one of the names known is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}" if near else ""


def refuse_private(name, owner):
    """Python itself asks for names that begin with an underscore; it is answered in its own words."""
    if name.startswith("_"):
        raise AttributeError(f"{owner} has no attribute {name}")


def answers(module, known):
    """A module's `__getattr__`, which says what of the names `known` is near."""

    def answer(name):
        refuse_private(name, module)
        raise unknown_name(f"{module.removeprefix('kiln.')} has no {name}{nearest(name, known)}")

    return answer

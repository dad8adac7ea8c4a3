"""Where in the user's program something stands."""

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(filename):
    return filename.startswith(_PACKAGE)


def caller():
    """(file, line) of the first frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def display(file):
    """The file as a person would name it: relative where that is shorter."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return relative if os.path.isabs(file) and len(relative) < len(file) else file

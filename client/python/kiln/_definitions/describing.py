"""Whether the function of a te.compute is being called, in which a tensor without indices is a mistake."""

import threading

_thread = threading.local()


def described(function, axes):
    """What the function of a compute gives for the axes."""
    depth = getattr(_thread, "depth", 0)
    _thread.depth = depth + 1
    try:
        return function(*axes)
    finally:
        _thread.depth = depth


def is_inside():
    """Whether one is being called, in this thread."""
    return getattr(_thread, "depth", 0) > 0

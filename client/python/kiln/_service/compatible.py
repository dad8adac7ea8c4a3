"""Which versions of client and daemon work together: those of one major version, minor versions at most one apart."""

from .._base.error import Unsupported
from .._version import VERSION


def require_compatible(other, address):
    """Refuses a daemon that is too old or too new for this client."""
    mine, theirs = _numbers(VERSION), _numbers(other)
    if theirs is None or (mine[0] == theirs[0] and abs(mine[1] - theirs[1]) <= 1):
        return  # what says no version is a build of its own
    raise Unsupported(
        f"the daemon at {address} has version {other} and this client {VERSION}, but they may be one minor version "
        f"apart at most: install {other} here, or {VERSION} there",
        "VERSION",
    )


def _numbers(version):
    """Major and minor of "1.2.3"."""
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) >= 2 and parts[0].isdigit() and parts[1].isdigit() else None

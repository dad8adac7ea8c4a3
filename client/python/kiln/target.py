"""What to compile for."""

from . import _source
from ._error import InvalidArgument, invalid, public

_NAMES = {"llvm": "llvm", "cpu": "llvm", "cuda": "cuda"}
_ARCH_OPTIONS = ("-mcpu", "-arch")
_IGNORED_OPTIONS = ("-mtriple", "-mattr", "-keys", "-model", "-libs", "-max_num_threads", "-device")
_current = []


class Target:
    """A target as classic programs write it: "llvm", "llvm -mcpu=znver4", "cuda -arch=sm_90"."""

    @public
    def __init__(self, target, host=None):
        if isinstance(target, Target):
            self.name, self.arch = target.name, target.arch
        else:
            self.name, self.arch = _parse(target)
        self.host = host

    @property
    def kind(self):
        return self.name

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost `with`."""
        if not _current and not allow_none:
            file, line = _source.caller()
            raise InvalidArgument("no target is set by a with statement", "TARGET", (), file, line)
        return _current[-1] if _current else None

    def __enter__(self):
        _current.append(self)
        return self

    def __exit__(self, *exception):
        _current.pop()

    def __str__(self):
        return self.name + (f" -mcpu={self.arch}" if self.arch else "")

    __repr__ = __str__


def _parse(target):
    if not isinstance(target, str) or not target.strip():
        raise invalid("TARGET", f"a target is a string such as llvm or cuda, but got {target!r}")
    name, *options = target.split()
    if name not in _NAMES:
        raise invalid("TARGET", f"unknown target {name}; known: llvm (or cpu), cuda")
    arch = ""
    for option in options:
        key, _, value = option.partition("=")
        if key in _ARCH_OPTIONS:
            arch = value
        elif key not in _IGNORED_OPTIONS:
            raise invalid(
                "TARGET", f"unknown option {option} of target {name}; known: -mcpu=, -arch="
            )
    return _NAMES[name], arch


def as_target(target, arch=None):
    """(name, arch) of a target given as a string, a Target or None."""
    if target is None:
        target = Target.current() or "llvm"
    target = Target(target)
    return target.name, arch or target.arch


create = Target


def cuda(model="", options=None):
    """The target cuda."""
    return Target("cuda")


def llvm(model="", options=None):
    """The target llvm."""
    return Target("llvm")


__all__ = ["Target", "create", "cuda", "llvm"]

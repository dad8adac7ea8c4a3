"""What to compile for."""

import json

from ._base import source as _source
from ._base.error import InvalidArgument, invalid, public

_NAMES = {"llvm": "llvm", "cpu": "llvm", "cuda": "cuda", "interpreter": "interpreter"}
_ARCH_OPTIONS = ("mcpu", "arch")
# Said by the daemon's device, or of no use here.
_IGNORED_OPTIONS = (
    "device", "device_type", "host", "keys", "libs", "link-params", "mabi", "mattr", "max_num_threads",
    "max_shared_memory_per_block", "max_threads_per_block", "mfloat-abi", "model", "mtriple",
    "num-cores", "opt-level", "registers_per_block", "runtime", "system-lib", "tag",
    "thread_warp_size", "vector-width",
)  # fmt: skip
_current = []


class Kind(str):
    """The name of a target; also its own `.name`, as newer programs ask for it."""

    @property
    def name(self):
        return str(self)


class Target:
    """A target as classic programs write it: "llvm", "llvm -mcpu=znver4", "cuda -arch=sm_90".

    "interpreter" runs the loops as they are written on the CPU, with every index checked; slow.
    """

    @public
    def __init__(self, target, host=None):
        if isinstance(target, Target):
            self.name, self.arch = target.name, target.arch
        elif isinstance(target, dict):
            self.name, self.arch = _from_dict(target)
        else:
            self.name, self.arch = _parse(target)
        self.host = host

    @property
    def kind(self):
        return Kind(self.name)

    @property
    def target_name(self):
        return self.name

    @property
    def keys(self):
        return ["cuda", "gpu"] if self.name == "cuda" else ["cpu"]

    @property
    def mcpu(self):
        return self.arch if self.name == "llvm" else ""

    @property
    def thread_warp_size(self):
        return 32 if self.name == "cuda" else 1

    @property
    def max_num_threads(self):
        """Threads a block."""
        return 1024 if self.name == "cuda" else 1

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
        option = "-arch" if self.name == "cuda" else "-mcpu"
        return self.name + (f" {option}={self.arch}" if self.arch else "")

    __repr__ = __str__


def _parse(target):
    if not isinstance(target, str) or not target.strip():
        raise invalid("TARGET", f"a target is a string such as llvm or cuda, but got {target!r}")
    if target.strip().startswith("{"):
        return _from_dict(_from_json(target))
    name, *words = target.split()
    _check_name(name)
    arch = ""
    position = 0
    while position < len(words):
        option = words[position]
        key, equals, value = option.partition("=")
        position += 1
        if not equals and position < len(words) and not words[position].startswith("-"):
            value = words[position]  # "-mcpu core-avx2" is written as well
            position += 1
        arch = _option(name, option, key.lstrip("-") if key.startswith("-") else "", value) or arch
    return _NAMES[name], arch


def _from_json(target):
    try:
        return json.loads(target)
    except ValueError:
        raise invalid("TARGET", f"the target {target} starts as JSON does, but is none") from None


def _from_dict(target):
    name = target.get("kind")
    _check_name(name)
    arch = ""
    for key, value in target.items():
        if key != "kind":
            arch = _option(name, key, key, str(value)) or arch
    return _NAMES[name], arch


def _check_name(name):
    if name not in _NAMES:
        raise invalid("TARGET", f"unknown target {name}; known: llvm (or cpu), cuda, interpreter")


def _option(name, option, key, value):
    """What the option says about the architecture, if it does."""
    if key in _ARCH_OPTIONS:
        return value
    if key not in _IGNORED_OPTIONS:
        raise invalid("TARGET", f"unknown option {option} of target {name}; known: -mcpu=, -arch=")
    return ""


def as_target(target, arch=None):
    """(name, arch) of a target given as a string, a Target or None."""
    if target is None:
        target = Target.current() or "llvm"
    target = Target(target)
    return target.name, arch or target.arch


create = Target


def cuda(model="", options=None):
    """The target cuda; `options` as in a target's string, "-arch=sm_90"."""
    return Target(" ".join(["cuda", *_words(options)]))


def llvm(model="", options=None):
    """The target llvm; `options` as in a target's string, "-mcpu=znver4"."""
    return Target(" ".join(["llvm", *_words(options)]))


def _words(options):
    return [options] if isinstance(options, str) else list(options or [])


__all__ = ["Target", "create", "cuda", "llvm"]

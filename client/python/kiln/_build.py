"""Lowering, building and compiling."""

from ._encode import encode
from ._error import invalid, public
from .target import Target, as_target

_AUTO = {None: 0, True: 0, "always": 0, False: 1, "never": 1}


def _parts(inputs, args, name, target, arch, options):
    """The fields that a CompileRequest and a LowerRequest share."""
    from .v1 import service_pb2 as wire

    auto = options.pop("auto", None)
    if auto not in _AUTO:
        raise invalid("AUTO", f'auto= is {auto!r}; known: "always" (the default), "never"')
    if isinstance(args, (str, Target)) and target is None:  # build([A, B], "cuda")
        args, target = None, args
    kernel = encode(inputs, args, name)
    target_name, target_arch = as_target(target, arch)
    reproducible = options.pop("reproducible", True)
    return {
        "definition": kernel.definition,
        "source_map": kernel.source_map,
        "schedule": kernel.schedule,
        "target": wire.Target(name=target_name, arch=target_arch),
        "options": wire.CompileOptions(
            auto=_AUTO[auto], not_reproducible=not reproducible, **options
        ),
    }


def _connection_or_default(connection):
    from ._connection import default_connection

    return connection or default_connection()


def _function(connection, **parts):
    from ._function import Function
    from .v1 import service_pb2 as wire

    return Function(_connection_or_default(connection), wire.CompileRequest(**parts))


@public
def build(
    inputs, args=None, target=None, target_host=None, name="main", *,
    auto=None, strict=False, fast=False, reproducible=True, connection=None,
):  # fmt: skip
    """A function that runs the kernel on a device the daemon has.

    `inputs` is a schedule with `args` its arguments, or a list of tensors that are the arguments.
    """
    options = {"auto": auto, "strict": strict, "fast": fast, "reproducible": reproducible}
    return _function(connection, **_parts(inputs, args, name, target, None, options))


@public
def compile(
    inputs, args=None, target=None, target_host=None, name="main", *,
    arch=None, auto=None, strict=False, fast=False, reproducible=True, connection=None,
):  # fmt: skip
    """As build, also for a device that the daemon's host lacks: `arch` is "sm_90" or a CPU's name."""
    options = {"auto": auto, "strict": strict, "fast": fast, "reproducible": reproducible}
    return _function(connection, **_parts(inputs, args, name, target, arch, options))


@public
def lower(
    inputs, args=None, name="main", simple_mode=True, auto=False, *,
    target=None, arch=None, after="", connection=None,
):  # fmt: skip
    """The kernel's loops as text: untouched stages as plain loops; with `auto` as it will run."""
    from .v1 import service_pb2 as wire

    parts = _parts(inputs, args, name, target, arch, {})
    request = wire.LowerRequest(after=after, auto=bool(auto), **parts)
    connection = _connection_or_default(connection)
    return connection.call("KernelService/Lower", request, wire.LowerResponse).text

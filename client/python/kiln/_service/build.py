"""Lowering, building and compiling."""

from .._base.error import called, invalid, public, unsupported
from .._definitions.kernel import Kernel
from .._encoding.encode import encode, encode_kernel
from .._encoding.lowered import Lowered
from ..target import Target, as_target
from ..v1 import service_pb2 as wire
from .connection import connection_or_default
from .function import Function, Library

_AUTO = {None: 0, True: 0, "always": 0, False: 1, "never": 1}


def compile_parts(inputs, args, name, target, arch, options):
    """Where sizes stand among the arguments, and the fields that a CompileRequest and a LowerRequest share."""
    auto = options.pop("auto", None)
    if auto not in _AUTO:
        raise invalid("AUTO", f'auto= is {auto!r}; known: "always" (the default), "never"')
    if isinstance(args, (str, Target)) and target is None:  # build([A, B], "cuda")
        args, target = None, args
    if options.pop("binds", None) is not None:
        raise _no_binds(name)
    target_name, target_arch = as_target(target, arch)
    kernel = _encoded(inputs, args, name, target_name)
    reproducible = options.pop("reproducible", True)
    return kernel.argument_sizes, {
        "definition": kernel.definition,
        "source_map": kernel.source_map,
        "schedule": kernel.schedule,
        "target": wire.Target(name=target_name, arch=target_arch),
        "options": wire.CompileOptions(
            auto=_AUTO[auto], not_reproducible=not reproducible, **options
        ),
    }


def _encoded(inputs, args, name, target):
    if not isinstance(inputs, Kernel):
        return encode(inputs, args, name)
    if args is not None:
        raise invalid("ARGUMENTS", f"kernel {inputs.name} has its arguments; leave args out")
    return encode_kernel(inputs, target)


def _no_binds(name):
    return unsupported(
        "BINDS",
        f"binds= of {called(name)} describes the memory of its arguments by hand; Kiln takes arguments of any "
        "strides and alignment and checks them at each call, so leave it out",
    )


def _function(connection, inputs, args, name, *rest):
    """The function, or for a list of lowered kernels the library, of what build or compile were given."""
    if isinstance(inputs, (list, tuple)) and inputs and all(isinstance(i, Lowered) for i in inputs):
        return Library([_function(connection, each, args, name, *rest) for each in inputs])
    if isinstance(inputs, Lowered):
        if args is not None and not isinstance(args, (str, Target)):
            raise invalid("ARGUMENTS", f"{inputs.name} was lowered with its arguments; leave args out")
        rest = (args, *rest[1:]) if args is not None and rest[0] is None else rest
        name = inputs.name if name == "main" else name
        inputs, args = inputs.inputs, inputs.args
    sizes, parts = compile_parts(inputs, args, name, *rest)
    return Function(connection_or_default(connection), wire.CompileRequest(**parts), sizes)


@public
def build(
    inputs, args=None, target=None, target_host=None, name="main", binds=None, *,
    auto=None, strict=False, fast=False, reproducible=True, check_nan=False, connection=None,
):  # fmt: skip
    """A function that runs the kernel on a device the daemon has.

    `inputs` is a schedule with `args` its arguments, a list of tensors that are the arguments, a kernel
    of a kernel file, or what lower returned. `strict` keeps sums of floats in the order of the
    definition; with `fast` scans of them may have another order, too, and on GPUs sums of 8-bit floats
    as few bits as tensor cores keep. With `check_nan` the kernel is interpreted, and the first element
    that becomes NaN stops a call (InvalidArgument, reason NAN).
    """
    options = {
        "auto": auto, "strict": strict, "fast": fast, "reproducible": reproducible, "binds": binds
    }  # fmt: skip
    if check_nan:
        target = "interpreter" if target is None else target
        options["check_nan"] = True
    return _function(connection, inputs, args, name, target, None, options)


@public
def compile(
    inputs, args=None, target=None, target_host=None, name="main", *,
    arch=None, auto=None, strict=False, fast=False, reproducible=True, connection=None,
):  # fmt: skip
    """As build, also for a device that the daemon's host lacks: `arch` is "sm_90" or a CPU's name."""
    options = {"auto": auto, "strict": strict, "fast": fast, "reproducible": reproducible}
    return _function(connection, inputs, args, name, target, arch, options)


@public
def lower(
    inputs, args=None, name="main", simple_mode=True, auto=False, *,
    target=None, arch=None, after="", binds=None, connection=None,
):  # fmt: skip
    """The kernel's loops as text: untouched stages as plain loops; with `auto` as it will run."""
    _, parts = compile_parts(inputs, args, name, target, arch, {"binds": binds})
    request = wire.LowerRequest(after=after, auto=bool(auto), **parts)
    connection = connection_or_default(connection)
    text = connection.call("KernelService/Lower", request, wire.LowerResponse).text
    return Lowered(text, inputs, args, name)

"""Kernel files: kernels as text. The daemon parses and prints them."""

import os

from .._base.error import invalid, public
from .._definitions.kernel import Kernel
from .._encoding.encode import encode
from .._schedule.schedule import Schedule
from ..v1 import service_pb2 as wire
from .connection import connection_or_default


@public
def parse_kernels(text, file_name="text", connection=None):
    """The kernels of a kernel file's text, by name. `file_name` is what errors call it."""
    request = wire.ParseRequest(text=text, file_name=file_name)
    connection = connection_or_default(connection)
    reply = connection.call("KernelService/Parse", request, wire.ParseResponse)
    return {
        kernel.source_map.kernel: Kernel(
            kernel.definition,
            kernel.source_map,
            {block.target: block.schedule for block in kernel.schedules},
        )
        for kernel in reply.kernels
    }


def read_kernel_file(path):
    """The text of a file, and what errors call it."""
    path = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise invalid("KERNEL_FILE", f"cannot read the kernel file {path}: {reason}") from None


@public
def load_kernels(path, connection=None):
    """The kernels of a .kiln file, by name; each can be built, or called on tensors."""
    text, path = read_kernel_file(path)
    return parse_kernels(text, path, connection)


@public
def kernel_text(inputs, args=None, name="main", target="cpu", connection=None):
    """A kernel file with one kernel: of a schedule and its arguments, of a list of tensors, or of a
    Kernel. The steps of a schedule stand in a block for `target`, "cpu" or "cuda"."""
    if isinstance(inputs, Kernel):
        kernel = wire.KernelText(definition=inputs.definition, source_map=inputs.source_map)
        blocks = inputs.schedules
    else:
        encoded = encode(inputs, args, name)
        kernel = wire.KernelText(definition=encoded.definition, source_map=encoded.source_map)
        has_steps = isinstance(inputs, Schedule) and inputs.steps
        blocks = {target: encoded.schedule} if has_steps else {}
    for block, schedule in blocks.items():
        kernel.schedules.add(target=block, schedule=schedule)
    connection = connection_or_default(connection)
    request = wire.PrintRequest(kernel=kernel)
    return connection.call("KernelService/Print", request, wire.PrintResponse).text

"""What a step of a program runs, and in which memory."""

import pathlib

from .._base import dtypes
from .._service.array import NDArray
from ..v1 import program_pb2 as wire
from . import message as messages
from .draw import picture
from .run import batch_of, defined, named_feeds


class ProgramPlan:
    """The kernels of a step in order, each a dict of name, nodes, reads, writes (bytes), kernel id and whether it runs
    `once` for all steps, as what it reads are parameters that stay; the bytes of its arena (`arena`), of what is alive at a time (`live`) and without reuse (`separate`), and `values`."""

    def __init__(self, program, reply):
        self.program = program.name
        self.kernels = [
            {
                "name": kernel.name, "nodes": list(kernel.nodes), "reads": kernel.read_bytes,
                "writes": kernel.written_bytes, "id": kernel.kernel_id, "once": kernel.once,
            }
            for kernel in reply.kernels
        ]  # fmt: skip
        self.arena, self.live, self.separate = reply.arena_bytes, reply.live_bytes, reply.separate_bytes
        lives = _lives(reply)
        self.values = [
            {
                "name": value.name, "dtype": dtypes.NAME[value.type], "shape": tuple(value.shape),
                "itemsize": dtypes.NUMPY[dtypes.NAME[value.type]].itemsize,
                "offset": None if value.offset < 0 else value.offset, "becomes": value.becomes,
                "reuses": value.reuses, "kernels": lives[value.value],
            }
            for value in reply.values
        ]  # fmt: skip
        self.compile_seconds = reply.timings.compile

    def svg(self, path=None):
        """A picture of the arena over the kernels of a step; written to `path` where there is one."""
        drawn = picture(self)
        if path is not None:
            pathlib.Path(path).write_text(drawn)
        return drawn

    @property
    def moved(self):
        """The bytes that the kernels of a step read and write."""
        return sum(kernel["reads"] + kernel["writes"] for kernel in self.kernels if not kernel["once"])

    def __str__(self):
        count = sum(not kernel["once"] for kernel in self.kernels)
        lines = [f"{self.program}: {count} kernels a step, {_bytes(self.moved)} moved"]
        for kernel in self.kernels:
            nodes = ", ".join(kernel["nodes"]) + ("; once for all steps" if kernel["once"] else "")
            lines.append(
                f"  {kernel['name']}: reads {_bytes(kernel['reads'])}, writes {_bytes(kernel['writes'])} ({nodes})"
            )
        lines.append(
            f"memory: {_bytes(self.arena)}, of which {_bytes(self.live)} are alive at a time "
            f"({_bytes(self.separate)} without reuse)"
        )
        for value in self.values:
            if value["offset"] is None:
                continue
            shape = ", ".join(map(str, value["shape"]))
            note = f", becomes {value['becomes']}" if value["becomes"] else ""
            note += f", where {value['reuses']} was" if value["reuses"] else ""
            lines.append(f"  {value['offset']:>10}  {value['name']}: {value['dtype']}[{shape}]{note}")
        return "\n".join(lines)

    __repr__ = __str__


def _lives(reply):
    """By value the first and the last kernel of a step that needs its memory: what a parameter becomes, all of them."""
    used, last = {}, len(reply.kernels) - 1
    for k, kernel in enumerate(reply.kernels):
        for number in (*kernel.inputs, *kernel.outputs):
            used[number] = (used.get(number, (k,))[0], k)
    return {
        value.value: (0, last) if value.becomes else used.get(value.value, (0, last)) for value in reply.values
    }


def _bytes(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 10_000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def plan_of(program, feeds, batch):
    message = program.message()
    feeds = named_feeds(program, feeds)
    rows = batch_of(program, batch)
    request = wire.PlanProgramRequest(program_id=defined(program), batch=rows)
    for tensor, kind in program._given.items():
        if kind == messages.STEP:
            continue
        shape, dtype = tensor.shape, tensor.dtype
        value = feeds.get(tensor, program._arrays.get(tensor))
        if value is not None:
            shape = value.shape
            dtype = value._dtype if isinstance(value, NDArray) else dtypes.dtype_name(value.dtype, tensor.name)
        request.shapes.add(value=message.numbers[tensor], type=dtypes.NUMBER[dtype], shape=shape)
    return ProgramPlan(program, program.connection.call("ProgramService/Plan", request, wire.PlanProgramResponse))

"""Programs of kernel files: the daemon reads the text, a run gives the arrays."""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define
from .._definitions.tensor import Tensor
from .._expressions.expr import Var
from .._service.array import NDArray
from .._service.connection import connection_or_default
from .._service.kernel_file import read_kernel_file
from ..v1 import program_pb2 as wire
from . import message as messages
from .program import Program

_GIVEN = (messages.INPUT, messages.BATCH, messages.PARAMETER, messages.STEP)


class FileMessage:
    """A program as it came, and the numbers of what a run gives."""

    def __init__(self, program, numbers):
        self.program, self.numbers = program, numbers


class FileProgram(Program):
    """A program block of a kernel file. What its steps do is fixed; parameters are given with the first run, and
    stay on the device from then on."""

    def __init__(self, program, target=None, connection=None, device=None):
        super().__init__(program.name, target, connection, device)
        numbers = {}
        for number, value in enumerate(program.values):
            if value.kind in _GIVEN:
                tensor = _placeholder(program, number, value.name)
                self._given[tensor], numbers[tensor] = value.kind, number
        self._file_message = FileMessage(program, numbers)
        names = [value.name for value in program.values]
        self._outputs, self._reports = ({names[n]: None for n in of} for of in (program.outputs, program.reports))

    def message(self):
        return self._file_message

    def _changed(self):
        if hasattr(self, "_file_message"):
            raise invalid(
                "PROGRAM_FILE",
                f"{self.name} is a program of a kernel file, where its steps are written; change it there, or make "
                "one by kiln.Program",
            )

    @public
    def run(self, feeds=None, **options):
        """As Program.run; `feeds` has parameters, too: arrays of numpy, or of the daemon, which then change."""
        return super().run(self._take_parameters(feeds or {}), **options)

    @public
    def plan(self, feeds=None, *, batch=None):
        """As Program.plan, of the shapes of `feeds` and of the parameters."""
        return super().plan(self._take_parameters(feeds or {}), batch=batch)

    def _take_parameters(self, feeds):
        """The other feeds."""
        parameters = {tensor.name: tensor for tensor, kind in self._given.items() if kind == messages.PARAMETER}
        others = {}
        for key, value in feeds.items():
            tensor = parameters.get(key.name if isinstance(key, Tensor) else key)
            if tensor is None:
                others[key] = value
            elif isinstance(value, NDArray):
                self._arrays[tensor] = value
            else:
                self._arrays[tensor] = self._upload(value, f"parameter {tensor.name}")
        for name, tensor in parameters.items():
            if tensor not in self._arrays:
                raise invalid(
                    "PROGRAM_GIVEN", f"{self.name} needs parameter {name}; give it with the first run, as in "
                    f'run({{"{name}": array}})',
                )  # fmt: skip
        return others

    def __repr__(self):
        return (
            f"FileProgram({self.name}: takes {', '.join(tensor.name for tensor in self._given) or 'nothing'}; reports "
            f"{', '.join(self._reports) or 'nothing'}; gives {', '.join(self._outputs) or 'nothing'})"
        )


def _placeholder(program, number, name):
    """Of the type and with as many dimensions as the definition that reads it says; float32 where none does."""
    for node in program.nodes:
        if node.gradient:
            continue
        definition = program.definitions[node.definition]
        inputs = [definition.stages[tensor.stage] for tensor in definition.parameters]
        inputs = [stage.placeholder for stage in inputs if stage.WhichOneof("kind") == "placeholder"]
        for row, value in zip(inputs, node.inputs):
            if value == number:
                shape = [Var(f"{name}_{d}", True) for d in range(len(row.shape))]
                return define.placeholder(shape, dtypes.NAME[row.type], name)
    return define.placeholder((), "float32", name)


@public
def parse_programs(text, file_name="text", target=None, connection=None):
    """The programs of a kernel file's text, by name. `file_name` is what errors call it."""
    connection = connection_or_default(connection)
    request = wire.ParseProgramsRequest(text=text, file_name=file_name)
    reply = connection.call("ProgramService/Parse", request, wire.ParseProgramsResponse)
    return {program.name: FileProgram(program, target, connection) for program in reply.programs}


@public
def load_programs(path, target=None, connection=None):
    """The programs of a .kiln file, by name: `load_programs("jacobi.kiln")["jacobi"].run({"u": plate})`."""
    text, path = read_kernel_file(path)
    return parse_programs(text, path, target, connection)

"""Every program here is also printed as a kernel file, with its schedule, and read back."""

import pytest

from kiln._service import function as functions
from kiln.v1 import service_pb2 as wire


def read_back(connection, request):
    """The request, with what a kernel file kept of it."""
    target = "cuda" if request.target.name == "cuda" else "cpu"
    kernel = wire.KernelText(definition=request.definition, source_map=request.source_map)
    kernel.schedules.add(target=target, schedule=request.schedule)
    text = connection.call(
        "KernelService/Print", wire.PrintRequest(kernel=kernel), wire.PrintResponse).text
    parsed = connection.call(
        "KernelService/Parse", wire.ParseRequest(text=text), wire.ParseResponse).kernels[0]
    result = wire.CompileRequest(target=request.target, options=request.options)
    result.definition.CopyFrom(parsed.definition)
    result.source_map.CopyFrom(parsed.source_map)
    result.schedule.CopyFrom(parsed.schedules[0].schedule)
    return text, result


@pytest.fixture(autouse=True)
def kernel_text_keeps_every_program(monkeypatch):
    """The service finds what was read under the id of what was built."""
    compile_kernel = functions.Function._compile

    def compile_twice(function):
        compile_kernel(function)
        connection = function._connection
        text, request = read_back(connection, function._request)
        reply = connection.call("KernelService/Compile", request, wire.CompileResponse)
        assert reply.cache == wire.CACHE_LEVEL_MEMORY, text

    monkeypatch.setattr(functions.Function, "_compile", compile_twice)

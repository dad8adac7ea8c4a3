"""A daemon without a compiler: every kernel it is given sets each output to its first input plus 1.

What it does to calls can be told: `fail_next(method, ...)` makes the next calls of a method fail.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import threading

import grpc
import numpy as np
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

import kiln
from kiln._base import dtypes
from kiln.v1 import error_pb2
from kiln.v1 import service_pb2 as wire

SERVICES = wire.DESCRIPTOR.services_by_name


def status_details(code, kind, reason, message, notes=(), file="", line=0, retry_after=None):
    """The trailing metadata that a Kiln error travels in."""
    detail = error_pb2.ErrorDetail(
        kind=kind, reason=reason, message=message, notes=notes, file=file, line=line
    )
    parts = [error_details_pb2.ErrorInfo(reason=reason, domain="kiln"), detail]
    if retry_after is not None:
        nanos = int(retry_after * 1e9)
        parts.append(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=nanos)))
    status = status_pb2.Status(code=code.value[0], message=message)
    for part in parts:
        packed = any_pb2.Any()
        packed.Pack(part)
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


class FakeDaemon:
    def __init__(self, address):
        self.counts = collections.Counter()
        self.requests = collections.defaultdict(list)
        self.metadata = collections.defaultdict(list)
        self.tensors = {}
        self.freed = []
        self.sessions_ended = 0
        self.cancelled = threading.Event()
        self.release = threading.Event()  # Run waits for it while `hold` is set
        self.hold = False
        self.keep_results = False  # as if they were too large for a reply
        self.kernels = {}
        self.boot_id = "boot-1"
        self._failures = collections.defaultdict(collections.deque)
        self._ids = itertools.count(1)
        pool = concurrent.futures.ThreadPoolExecutor(16)
        self._server = grpc.server(pool, options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(tuple(self._handlers()))
        port = self._server.add_insecure_port(address)
        self.address = address if address.startswith("unix:") else f"127.0.0.1:{port}"
        self._server.start()

    def _handlers(self):
        for service in SERVICES.values():
            methods = {}
            for method in service.methods:
                function = getattr(self, "_" + method.name.lower(), None)
                if function is not None:
                    methods[method.name] = self._handler(method, function)
            yield grpc.method_handlers_generic_handler(service.full_name, methods)

    def _handler(self, method, function):
        kinds = {(False, False): grpc.unary_unary_rpc_method_handler,
                 (False, True): grpc.unary_stream_rpc_method_handler,
                 (True, False): grpc.stream_unary_rpc_method_handler}
        request_type = getattr(wire, method.input_type.name)
        reply_type = getattr(wire, method.output_type.name)

        def counted(request, context):
            self.counts[method.name] += 1
            self.metadata[method.name].append(dict(context.invocation_metadata()))
            if not method.client_streaming:
                self.requests[method.name].append(request)
            self._maybe_fail(method.name, context)
            return function(request, context)

        kind = kinds[method.client_streaming, method.server_streaming]
        if method.server_streaming:
            return kind(lambda r, c: (yield from counted(r, c)), request_type.FromString,
                        reply_type.SerializeToString)
        return kind(counted, request_type.FromString, reply_type.SerializeToString)

    def fail_next(self, method, code, *detail, times=1, **more):
        """The next calls of a method end with a status; with details, as Kiln's errors do."""
        trailing = status_details(code, *detail, **more) if detail else ()
        text = detail[2] if detail else "told to fail"
        for _ in range(times):
            self._failures[method].append((code, text, trailing))

    def _maybe_fail(self, method, context):
        with contextlib.suppress(IndexError):
            code, text, trailing = self._failures[method].popleft()
            context.set_trailing_metadata(trailing)
            context.abort(code, text)

    def forget_kernels(self):
        self.kernels.clear()

    def stop(self):
        self.release.set()
        self._server.stop(0.1).wait(5)

    # The services.

    def _describe(self, request, context):
        return wire.DescribeResponse(
            version=kiln.__version__, boot_id=self.boot_id, pid=1,
            devices=[wire.Device(name="cpu:0", target="llvm", state="ready")],
            counters={"compiles": self.counts["Compile"]})

    def _session(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        yield wire.SessionEvent(session=f"session-{next(self._ids)}")
        ended.wait()
        self.sessions_ended += 1

    def _compile(self, request, context):
        kernel_id = f"kernel-{next(self._ids)}"
        parameters = []
        definition, names = request.definition, request.source_map
        for tensor in definition.parameters:
            stage = definition.stages[tensor.stage]
            output = stage.WhichOneof("kind") != "placeholder"
            parameters.append(wire.Parameter(
                name=names.stages[tensor.stage], output=output,
                type=stage.placeholder.type if not output else dtypes.NUMBER["float32"]))
        self.kernels[kernel_id] = parameters
        return wire.CompileResponse(kernel_id=kernel_id, parameters=parameters,
                                    cache=wire.CACHE_LEVEL_COMPILED,
                                    timings=wire.Timings(compile=0.25))

    def _inspect(self, request, context):
        self._known(request.kernel_id, context)
        return wire.InspectResponse(text=f"source {request.source}", report_json='{"guards": 0}')

    def _lower(self, request, context):
        return wire.LowerResponse(text=f"fn {request.source_map.kernel}()")

    def _known(self, kernel_id, context):
        if kernel_id not in self.kernels:
            context.set_trailing_metadata(status_details(
                grpc.StatusCode.NOT_FOUND, 3, "KERNEL", "the daemon does not know this kernel"))
            context.abort(grpc.StatusCode.NOT_FOUND, "no kernel")
        return self.kernels[kernel_id]

    def _run(self, request, context):
        parameters = self._known(request.kernel_id, context)
        if self.hold:
            context.add_callback(lambda: (self.cancelled.set(), self.release.set()))
            self.release.wait(10)
        value = self._value(request.arguments[0])
        reply = wire.RunResponse(timings=wire.Timings(kernel=0.5, cache=wire.CACHE_LEVEL_MEMORY))
        reply.measured.extend([1e-3 * request.repeat] * request.measurements)
        for position, (parameter, argument) in enumerate(zip(parameters, request.arguments)):
            if parameter.output:
                self._answer(position, argument, value + np.float32(1), reply)
        return reply

    def _value(self, argument):
        if argument.tensor:
            return self.tensors[argument.tensor]
        dtype = dtypes.NUMPY[dtypes.NAME[argument.inline.type]]
        return np.frombuffer(argument.inline.data, dtype).reshape(argument.inline.shape)

    def _answer(self, position, argument, values, reply):
        if argument.tensor:
            self.tensors[argument.tensor] = values
            return
        result = reply.results.add(parameter=position, shape=values.shape,
                                   type=dtypes.NUMBER[dtypes.dtype_name(values.dtype, "")])
        if self.keep_results or argument.WhichOneof("value") == "output" and argument.output.keep:
            result.tensor = f"tensor-{next(self._ids)}"
            self.tensors[result.tensor] = values
        else:
            result.data = values.tobytes()

    def _upload(self, requests, context):
        header = next(requests).header
        dtype = dtypes.NUMPY[dtypes.NAME[header.type]]
        data = b"".join(request.chunk for request in requests)
        if header.empty:
            data = bytes(int(np.prod(header.shape)) * dtype.itemsize)
        name = header.into or f"tensor-{next(self._ids)}"
        self.tensors[name] = np.frombuffer(data, dtype).reshape(header.shape)
        return wire.UploadResponse(tensor=name)

    def _put(self, request, context):
        parts = [wire.UploadRequest(header=request.header), wire.UploadRequest(chunk=request.data)]
        return self._upload(iter(parts), context)

    def _copy(self, request, context):
        name = request.into or f"tensor-{next(self._ids)}"
        self.tensors[name] = self.tensors[request.tensor]
        return wire.UploadResponse(tensor=name)

    def _download(self, request, context):
        values = self.tensors[request.tensor]
        yield wire.DownloadResponse(header=wire.TensorHeader(
            type=dtypes.NUMBER[dtypes.dtype_name(values.dtype, "")], shape=values.shape))
        data = values.tobytes()
        for start in range(0, len(data), 1 << 20):
            yield wire.DownloadResponse(chunk=data[start:start + (1 << 20)])

    def _free(self, request, context):
        self.freed.extend(request.tensors)
        for tensor in request.tensors:
            self.tensors.pop(tensor, None)
        return wire.FreeResponse(freed=len(request.tensors))

"""What the client does on its own: calls, errors, retries, sessions. The daemon here is a fake."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import pytest
from expect import expect
from fake_daemon import FakeDaemon

import kiln
from kiln import te
from kiln._base import dtypes
from kiln._service import frames
from kiln.v1 import service_pb2 as wire

CODE = grpc.StatusCode


def add_one(outputs=1):
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    made = [te.compute((n,), lambda i: a[i] + 1, name="BCD"[k]) for k in range(outputs)]
    return [a, *made]


def eventually(condition):
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


# Ways to call.


def test_outputs_given_are_written_and_nothing_is_returned(fake):
    f = kiln.build(add_one(), name="f")
    a, b = kiln.nd.array(np.arange(3, dtype="float32")), kiln.nd.empty((3,))
    assert f(a, b) is None
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3])
    assert fake.requests["Run"][-1].arguments[1].tensor == b._id


def test_inputs_alone_give_an_array_or_a_tuple(fake):
    a = np.arange(3, dtype="float32")
    b = kiln.build(add_one())(a)
    assert isinstance(b, kiln.nd.NDArray)
    assert (b.shape, b.dtype, b.device) == ((3,), "float32", kiln.cpu(0))
    pair = kiln.build(add_one(outputs=2))(a)
    assert isinstance(pair, tuple) and [x.numpy().tolist() for x in pair] == [[1, 2, 3]] * 2


def test_numpy_outputs_are_written_into(fake):
    out = np.zeros((6,), "float32")[::2]
    kiln.build(add_one())(np.arange(3, dtype="float32"), out)
    np.testing.assert_array_equal(out, [1, 2, 3])
    assert not fake.requests["Run"][-1].arguments[1].inline.data


def test_small_arrays_travel_inside_the_call_and_large_ones_before_it(fake):
    f = kiln.build(add_one())
    f(np.zeros(1000, "float32"))
    assert fake.counts["Put"] == fake.counts["Upload"] == 0
    large = np.arange(700_000, dtype="float32")
    np.testing.assert_array_equal(f(large).numpy(), large + 1)
    assert fake.counts["Upload"] == 1


@pytest.mark.parametrize("size", [0, 1, 127, 128, 1 << 20, (1 << 20) + 1, (3 << 20) + 7])
def test_arrays_of_up_to_a_mebibyte_are_one_message_and_others_a_stream(fake, size):
    values = np.arange(size, dtype="uint32").astype("uint8")
    array = kiln.nd.array(values)
    np.testing.assert_array_equal(array.numpy(), values)
    array.copyfrom(values[::-1])
    np.testing.assert_array_equal(array.numpy(), values[::-1])
    whole = size <= 1 << 20
    assert (fake.counts["Put"], fake.counts["Upload"]) == ((2, 0) if whole else (0, 2))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 1 << 20])
def test_a_frame_is_what_protobuf_writes(size):
    data = np.arange(size, dtype="uint32").astype("uint8").tobytes()
    message = wire.DownloadResponse(chunk=data).SerializeToString()
    assert frames.field(2, memoryview(data)) == message
    assert frames.contents(2, message, wire.DownloadResponse).tobytes() == data
    # Another encoding of the same message.
    assert frames.contents(2, message + message, wire.DownloadResponse).tobytes() == data


def test_lists_and_numbers_take_the_parameters_type(fake):
    f = kiln.build(add_one())
    assert f([1, 2]).numpy().tolist() == [2.0, 3.0]
    assert f(3).numpy().tolist() == 4.0


def test_sizes_are_given_by_name(fake):
    f = kiln.build(add_one())
    f([1.0], n=1)
    assert dict(fake.requests["Run"][-1].sizes) == {"n": 1}


CALL_MISTAKES = [
    (lambda f: f(), "f takes 2 arguments (A, B), but got 0"),
    (lambda f: f([1.0], [2.0]),
     "argument B of f is list, but an output must be an NDArray or a numpy array"),
    (lambda f: f(object()), "argument A of f is no array, but object"),
    (lambda f: f(np.zeros(3, "complex64")),
     "argument A of f: unknown dtype complex64; known: bool, int8, int16, int32, int64, uint8, uint16, "
     "uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2"),
    (lambda f: f.time_evaluator("f", None, number=0),
     "time_evaluator: number and repeat must be at least 1"),
]


@pytest.mark.parametrize("mistake, message", CALL_MISTAKES, ids=[m for _, m in CALL_MISTAKES])
def test_a_wrong_call_gets_a_sentence(fake, mistake, message):
    f = kiln.build(add_one(), name="f")
    expect(kiln.InvalidArgument, message, lambda: mistake(f))
    assert fake.counts["Run"] == 0


# What is known of a function.


def test_timings_are_those_of_the_last_call(fake):
    f = kiln.build(add_one())
    assert f.timings["cache"] == "compiled" and f.timings["compile"] == 0.25
    f([1.0])
    assert f.timings == {"queue": 0, "compile": 0, "upload": 0, "kernel": 0.5, "download": 0,
                         "cache": "memory"}


def test_timings_include_arrays_that_are_sent_before_and_fetched_after_the_call(fake):
    f = kiln.build(add_one())
    large = np.zeros(1 << 20, "float32")
    f(large)
    assert f.timings["upload"] > 0 and f.timings["download"] == 0
    f(large, kiln.nd.empty(1 << 20))
    assert f.timings["upload"] > 0
    fake.keep_results = True
    f(large, np.zeros(1 << 20, "float32"))
    assert f.timings["upload"] > 0 and f.timings["download"] > 0
    a, b = kiln.nd.empty(1), kiln.nd.empty(1)
    f(a, b)
    assert f.timings["upload"] == f.timings["download"] == 0


def test_time_evaluator_measures(fake):
    f = kiln.build(add_one())
    a, b = kiln.nd.array(np.zeros(3, "float32")), kiln.nd.zeros(3)
    assert b.tolist() == [0, 0, 0] and kiln.nd.zeros(()).item() == 0
    result = f.time_evaluator(f.entry_name, kiln.cpu(0), number=5, repeat=3)(a, b)
    assert result.results == [0.005] * 3 and result.mean == pytest.approx(0.005)
    assert (fake.requests["Run"][-1].repeat, fake.requests["Run"][-1].measurements) == (5, 3)


def test_sources_and_report(fake):
    f = kiln.build(add_one(), name="f")
    assert (f.get_source(), f.source("asm"), f.report()) == ("source llvm", "source asm", {"guards": 0})
    assert (f.entry_name, f["f"], f.imported_modules) == ("f", f, [])
    g = kiln.compile(add_one(), target="cuda", arch="sm_90")
    assert fake.requests["Compile"][-1].target.arch == "sm_90"
    assert g.imported_modules[0].get_source() == "source cuda"
    assert repr(f) == "Function f(A: float32[], B: float32[]) for llvm"


def test_options_reach_the_request(fake):
    kiln.build(add_one(), auto="never", strict=True, fast=True, reproducible=False)
    options = fake.requests["Compile"][-1].options
    assert (options.auto, options.strict, options.fast, options.not_reproducible) == (1, True, True, True)
    assert kiln.lower(add_one(), name="g", simple_mode=True) == "fn g()"
    assert not fake.requests["Lower"][-1].auto
    expect(kiln.InvalidArgument, 'auto= is \'often\'; known: "always" (the default), "never"',
           lambda: kiln.build(add_one(), auto="often"))
    expect(kiln.InvalidArgument, "unknown target opencl; known: llvm (or cpu), cuda, interpreter",
           lambda: kiln.build(add_one(), target="opencl"))


# Arrays.


def test_an_array_is_numpys_on_the_way_out(fake):
    x = np.arange(6, dtype="float64").reshape(2, 3)
    a = kiln.nd.array(x, kiln.cpu(0))
    assert (a.shape, a.dtype, a.ndim, a.size, a.nbytes, len(a)) == ((2, 3), "float64", 2, 6, 48, 2)
    for back in (a.numpy(), a.asnumpy(), np.asarray(a), np.from_dlpack(a), a[:]):
        np.testing.assert_array_equal(back, x)
    assert a[1, 2] == 5 and np.asarray(a, "float32").dtype == np.float32
    assert repr(kiln.nd.array(np.float32([1, 2]))) == (
        "NDArray([1., 2.], shape=(2,), dtype=float32, device=cpu(0))")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float8_e4m3fn"])
def test_every_type_makes_the_round_trip(fake, dtype):
    x = np.arange(5).astype(dtypes.NUMPY[dtype])
    a = kiln.nd.array(x)
    assert a.dtype == dtype and a.numpy().tobytes() == x.tobytes()


def test_arrays_of_odd_layouts_are_sent_as_numpy_shows_them(fake):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    for y in (x.T, x[:, ::2], x.astype(">f4"), x[:0], np.float32(3)):
        np.testing.assert_array_equal(kiln.nd.array(y).numpy(), y)


def test_copies(fake):
    a = kiln.nd.array(np.float32([1, 2]))
    b = kiln.nd.empty((2,), "float32", kiln.cpu(0))
    assert a.copyto(b) is b and b.numpy().tolist() == [1, 2]
    assert b.copyfrom([3, 4]).numpy().tolist() == [3, 4]
    b[0] = 7
    assert b.numpy().tolist() == [7, 4]
    assert a.copyto(np.zeros(2)).tolist() == [1, 2]
    assert a.copyto(kiln.cpu(0)).numpy().tolist() == [1, 2]
    expect(kiln.InvalidArgument, "cannot copy shape (3,) into an array of shape (2,)",
           lambda: a.copyfrom(np.zeros(3)))
    expect(kiln.InvalidArgument, "unknown device tpu; known: cpu, cuda, as in cuda:0",
           lambda: kiln.device("tpu"))


def test_arrays_without_a_reference_are_freed_in_batches(fake):
    arrays = [kiln.nd.empty(1) for _ in range(100)]
    ids = {a._id for a in arrays}
    del arrays
    assert fake.counts["Free"] == 0
    kept = kiln.nd.empty(1)
    assert fake.counts["Free"] == 1 and set(fake.freed) == ids and kept._id not in ids


def test_large_arrays_without_a_reference_are_freed_sooner(fake):
    first = kiln.nd.array(np.zeros(3 << 20, "float32"))._id
    kiln.nd.array(np.zeros(3 << 20, "float32"))
    assert fake.counts["Free"] == 0 or first in fake.freed
    kiln.nd.empty(1)
    assert fake.counts["Free"] == 1 and first in fake.freed


def test_arrays_without_a_reference_make_room_for_others(fake):
    dead = kiln.nd.empty(1)._id
    fake.fail_next("Put", CODE.RESOURCE_EXHAUSTED, 5, "TENSOR_MEMORY", "no memory is left", retry_after=0.9)
    kiln.nd.empty(1)
    assert fake.freed == [dead] and fake.counts["Put"] == 3


# Errors.


def test_details_become_a_typed_error(fake):
    fake.fail_next("Compile", CODE.INVALID_ARGUMENT, 1, "SPLIT", "split is wrong",
                   notes=["in stage C"], file="script.py", line=12)
    error = expect(kiln.InvalidArgument, "split is wrong", lambda: kiln.build(add_one()))
    assert str(error) == "split is wrong\nin stage C\n  at script.py:12"
    assert (error.kind, error.reason, error.notes) == ("InvalidArgument", "SPLIT", ["in stage C"])
    assert (error.file, error.line) == ("script.py", 12)
    assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.parametrize("number, code, kind, base", [
    (1, CODE.INVALID_ARGUMENT, kiln.InvalidArgument, ValueError),
    (2, CODE.FAILED_PRECONDITION, kiln.Unsupported, Exception),
    (3, CODE.NOT_FOUND, kiln.NotFound, LookupError),
    (4, CODE.DATA_LOSS, kiln.HandleLost, Exception),
    (5, CODE.RESOURCE_EXHAUSTED, kiln.ResourceExhausted, Exception),
    (6, CODE.UNAVAILABLE, kiln.Unavailable, ConnectionError),
    (7, CODE.DEADLINE_EXCEEDED, kiln.DeadlineExceeded, TimeoutError),
    (8, CODE.CANCELLED, kiln.Cancelled, Exception),
    (9, CODE.UNAUTHENTICATED, kiln.Unauthenticated, PermissionError),
    (10, CODE.INTERNAL, kiln.Internal, Exception),
])
def test_every_kind_has_its_class(fake, number, code, kind, base):
    fake.fail_next("Lower", code, number, "REASON", "a sentence")
    error = expect(kind, "a sentence", lambda: kiln.lower(add_one()))
    assert isinstance(error, base) and isinstance(error, kiln.Error)


def test_an_error_shows_the_users_frames_alone(fake):
    fake.fail_next("Run", CODE.INVALID_ARGUMENT, 1, "R", "no")
    f = kiln.build(add_one())
    a, b = kiln.nd.empty(1), kiln.nd.empty(1)
    with pytest.raises(kiln.InvalidArgument) as caught:
        f(a, b)
    files = [entry.path for entry in caught.traceback]
    assert len([path for path in files if "client/python/kiln" in str(path)]) <= 2


# Repeating.


def test_unavailable_with_a_delay_is_repeated(fake):
    f = kiln.build(add_one())
    a, b = kiln.nd.array(np.zeros(2, "float32")), kiln.nd.empty(2)
    fake.fail_next("Run", CODE.UNAVAILABLE, 6, "WORKER", "the worker was replaced", retry_after=0.01, times=2)
    f(a, b)
    assert fake.counts["Run"] == 3


def test_repeating_is_bounded(fake):
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.UNAVAILABLE, 6, "WORKER", "the worker was replaced", retry_after=0.01, times=99)
    expect(kiln.Unavailable, "the worker was replaced", lambda: f([1.0]))
    assert fake.counts["Run"] == 5


def test_a_call_that_the_daemon_cancels_says_so(fake):
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.CANCELLED, times=99)
    expect(kiln.Cancelled, f"the daemon at {fake.address} cancelled the call", lambda: f([1.0]))
    assert fake.counts["Run"] == 5


def test_unavailable_without_a_delay_is_not_repeated(fake):
    fake.fail_next("Compile", CODE.UNAVAILABLE, 6, "NO_DEVICE", "there is no CUDA device")
    assert expect(kiln.Unavailable, "there is no CUDA device",
                  lambda: kiln.build(add_one(), target="cuda")).reason == "NO_DEVICE"
    assert fake.counts["Compile"] == 1


def test_a_cancel_we_did_not_ask_for_is_repeated(fake):
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.CANCELLED)
    assert f([1.0]).numpy().tolist() == [2]
    assert fake.counts["Run"] == 2


def test_a_call_that_overwrites_its_input_is_not_repeated_after_a_cancel(fake):
    f = kiln.build(add_one())
    a = kiln.nd.empty(1)
    fake.fail_next("Run", CODE.CANCELLED)
    with pytest.raises(kiln.Cancelled):
        f(a, a)
    assert fake.counts["Run"] == 1


def test_a_call_that_overwrites_its_input_is_not_repeated_when_its_worker_is_lost(fake):
    f = kiln.build(add_one())
    a = kiln.nd.empty(1)
    fake.fail_next("Run", CODE.UNAVAILABLE, 6, "WORKER_RESTARTED", "the worker ended while it ran f", retry_after=0.01)
    expect(kiln.Unavailable, "the worker ended while it ran f", lambda: f(a, a))
    fake.fail_next("Run", CODE.UNAVAILABLE, 6, "WORKER_RESTARTED", "the worker ended while it ran f", retry_after=0.01)
    expect(kiln.Unavailable, "the worker ended while it ran f", lambda: f.submit(a, a).result(10))
    assert fake.counts["Run"] == 2


def test_a_call_that_overwrites_its_input_is_repeated_when_it_has_not_begun(fake):
    f = kiln.build(add_one())
    a = kiln.nd.empty(1)
    fake.fail_next("Run", CODE.RESOURCE_EXHAUSTED, 5, "QUEUE_FULL", "256 calls wait", retry_after=0.01, times=2)
    f(a, a)
    assert fake.counts["Run"] == 3


def test_a_forgotten_kernel_is_compiled_again_once(fake):
    f = kiln.build(add_one())
    a, b = kiln.nd.array(np.zeros(2, "float32")), kiln.nd.empty(2)
    fake.forget_kernels()
    f(a, b)
    f(a, b)
    assert b.numpy().tolist() == [1, 1] and fake.counts["Compile"] == 2
    fake.forget_kernels()
    assert f.source("asm") == "source asm" and fake.counts["Compile"] == 3


def test_a_lost_tensor_is_an_error_and_compiles_nothing(fake):
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.NOT_FOUND, 3, "TENSOR", "there is no tensor 7")
    expect(kiln.NotFound, "there is no tensor 7", lambda: f(kiln.nd.empty(1), kiln.nd.empty(1)))
    assert fake.counts["Compile"] == 1


def test_an_ended_session_is_opened_again(fake):
    fake.fail_next("Put", CODE.NOT_FOUND, 3, "SESSION", "session 1 has ended; open another")
    assert kiln.nd.array(np.float32([1])).numpy().tolist() == [1]
    assert fake.counts["Session"] == 2
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.NOT_FOUND, 3, "SESSION", "session 2 has ended; open another")
    f([1.0])
    assert fake.counts["Session"] == 3
    assert fake.requests["Run"][-1].session == fake.connection.session


def test_an_ended_session_is_opened_again_once_for_all_threads(fake):
    f = kiln.build(add_one())
    threads = 8
    together = threading.Barrier(threads)
    fake.fail_next("Run", CODE.NOT_FOUND, 3, "SESSION", "session 1 has ended; open another", times=threads)

    def call():
        together.wait()
        return f([1.0]).numpy().tolist()

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        assert [each.result() for each in [pool.submit(call) for _ in range(threads)]] == [[2]] * threads
    assert fake.counts["Run"] == 2 * threads
    # Of a thread that began its call when others had the new session already, it was the new one that was said to be gone.
    assert fake.counts["Session"] < threads


def test_who_is_refused_for_lack_of_room_has_patience(fake):
    f = kiln.build(add_one())
    fake.fail_next("Run", CODE.RESOURCE_EXHAUSTED, 5, "QUEUE_FULL", "256 calls wait", retry_after=0.02, times=20)
    assert f([1.0]).numpy().tolist() == [2]
    assert fake.counts["Run"] == 21


def test_a_restarted_daemon_is_found_again(fake):
    f = kiln.build(add_one())
    fake.stop()
    again = FakeDaemon(fake.address)
    again.fail_next("Run", CODE.NOT_FOUND, 3, "KERNEL", "kernel 1 is not known here")
    again.fail_next("Run", CODE.NOT_FOUND, 3, "SESSION", "session 1 has ended")
    assert f([1.0]).numpy().tolist() == [2]
    assert (again.counts["Compile"], again.counts["Session"]) == (2, 1)
    fake.connection.close()
    again.stop()


# Sessions and connections.


def test_a_connection_holds_a_session_until_it_is_closed(fake):
    assert fake.counts["Session"] == 1 and fake.sessions_ended == 0
    kiln.nd.empty(1)
    fake.connection.close()
    eventually(lambda: fake.sessions_ended == 1)
    expect(kiln.Unavailable, "the connection is closed", lambda: fake.connection.describe())


def test_connections_have_the_modules_functions(fake):
    with kiln.connect(fake.address, default=False) as other:
        f = other.build(add_one(), name="f")
        assert f(other.array([1.0])).numpy().tolist() == [2]
        assert other.lower(add_one(), name="g") == "fn g()"
        assert other.compile(add_one()).entry_name == "main"
        assert other.empty((2,)).shape == (2,)
        assert other.describe()["compiles"] == 2
        expect(kiln.InvalidArgument, "argument B of f lives on another daemon",
               lambda: f(other.empty(1), kiln.nd.empty(1)))
    assert kiln.describe()["address"] == fake.address


def test_the_token_goes_with_every_call(fake):
    with kiln.connect(fake.address, token="secret", default=False) as connection:
        f = connection.build(add_one())
        f(connection.array([1.0]))
        f.submit([1.0]).result()
        connection.array(np.zeros(1 << 20, "float32"))
    for method in ("Describe", "Session", "Compile", "Put", "Upload", "Run"):
        assert fake.metadata[method][-1]["authorization"] == "Bearer secret", method


def test_the_trace_of_the_process_goes_with_every_call(fake, monkeypatch):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    monkeypatch.setenv("TRACEPARENT", trace)
    with kiln.connect(fake.address, token="secret", default=False) as connection:
        connection.build(add_one())([1.0])
    for method in ("Session", "Compile", "Run"):
        assert fake.metadata[method][-1]["traceparent"] == trace, method
        assert fake.metadata[method][-1]["authorization"] == "Bearer secret", method


@pytest.mark.parametrize("address", ["nowhere", "unix:", "host:port"])
def test_an_unreadable_address_is_refused(address):
    expect(kiln.InvalidArgument, f"the address {address} is neither HOST:PORT nor unix:PATH",
           lambda: kiln.connect(address))


def test_nobody_there_is_one_sentence(short_folder):
    begin = time.monotonic()
    address = f"unix:{short_folder}/none.sock"
    error = expect(kiln.Unavailable, f"nothing listens at {address}, there is no such socket: start kilnd there, or "
                   "correct the address", lambda: kiln.connect(address))
    assert error.reason == "UNREACHABLE"
    assert time.monotonic() - begin < 5


def test_a_certificate_that_is_not_there_is_refused():
    expect(kiln.InvalidArgument, "cannot read the certificate /no/ca.pem: No such file or directory",
           lambda: kiln.connect("localhost:1", ca="/no/ca.pem"))


# Futures.


def test_submit_gives_a_future(fake):
    f = kiln.build(add_one())
    futures = [f.submit([float(i)]) for i in range(5)]
    assert [x.result(5).numpy().tolist() for x in futures] == [[i + 1] for i in range(5)]
    done, waiting = concurrent.futures.wait(futures, timeout=1)
    assert len(done) == 5 and not waiting
    out = np.zeros(1, "float32")
    assert f.submit([1.0], out).result(5) is None and out[0] == 2


def test_cancelling_a_future_cancels_on_the_daemon(fake):
    f = kiln.build(add_one())
    fake.hold = True
    future = f.submit([1.0])
    eventually(lambda: fake.counts["Run"] == 1)
    assert future.running() and future.cancel()
    assert fake.cancelled.wait(5)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(5)


def test_a_future_repeats_and_fails_as_a_call_does(fake):
    f = kiln.build(add_one())
    fake.forget_kernels()
    assert f.submit([1.0]).result(5).numpy().tolist() == [2]
    fake.fail_next("Run", CODE.INVALID_ARGUMENT, 1, "R", "no")
    expect(kiln.InvalidArgument, "no", lambda: f.submit([1.0]).result(5))


def test_an_interrupt_cancels_on_the_daemon(fake):
    f = kiln.build(add_one())
    fake.hold = True

    def interrupt():
        eventually(lambda: fake.counts["Run"] == 1)
        os.kill(os.getpid(), signal.SIGINT)

    # A test run in the background is started with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            f([1.0])
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert fake.cancelled.wait(5)


def test_calls_from_many_threads(fake):
    f = kiln.build(add_one())

    def work(k):
        a, b = kiln.nd.array(np.full(3, k, "float32")), kiln.nd.empty(3)
        for _ in range(20):
            f(a, b)
        return b.numpy().tolist() == [k + 1] * 3

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


# Processes.

FORK = """
import os, sys, kiln
kiln.connect(sys.argv[1])
array = kiln.nd.empty(1)
pid = os.fork()
if pid == 0:
    for action in (array.numpy, kiln.describe, lambda: kiln.connect(sys.argv[1])):
        try:
            action()
            os._exit(1)
        except kiln.Unavailable as error:
            if error.reason != "FORKED" or "spawn" not in error.message:
                os._exit(2)
    os._exit(0)
_, status = os.waitpid(pid, 0)
print("child", status, "parent", array.numpy().tolist())
"""


def test_a_connection_does_not_survive_a_fork_and_says_so(fake):
    done = subprocess.run([sys.executable, "-c", FORK, fake.address], capture_output=True, text=True,
                          timeout=30)
    assert done.stdout == "child 0 parent [0.0]\n", done.stderr


def test_a_program_ends_quietly_with_its_session(fake):
    program = "import sys, kiln; kiln.connect(sys.argv[1]); a = kiln.nd.empty(3); print(a.shape)"
    done = subprocess.run([sys.executable, "-c", program, fake.address], capture_output=True, text=True,
                          timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("(3,)\n", "", 0)
    eventually(lambda: fake.sessions_ended == 1)

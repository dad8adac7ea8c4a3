"""Calls that nobody waits for one by one: over one stream, each with its own end."""

import concurrent.futures
import os
import signal
import threading
import time

import numpy as np
import pytest

import kernels
import kiln
from kiln import te


def endless(connection):
    n = te.var("n")
    A = te.placeholder((1,), name="A")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((1,), lambda i: te.sum(te.sin(A[i] + k.astype("float32")), axis=k), name="C")
    return connection.build([n, A, C], name="endless")


def test_many_calls_go_over_one_stream(daemon):
    f = daemon.connection.build(kernels.add_one(8))
    arrays = [daemon.connection.array(np.full(8, i, "float32")) for i in range(10)]
    futures = [f.submit(arrays[i % 10]) for i in range(1000)]
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(60).numpy(), np.full(8, i % 10 + 1))
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("kiln calls") >= 1
    assert daemon.connection._call_stream.is_usable and not daemon.connection._call_stream._pending


def test_calls_of_a_client_run_in_their_order(daemon):
    """Each overwrites its own input, so that each must see what the one before has written."""
    f = daemon.connection.build(kernels.add_one(8))
    x = daemon.connection.array(np.zeros(8, "float32"))
    concurrent.futures.wait([f.submit(x, x) for _ in range(200)])
    np.testing.assert_array_equal(x.numpy(), np.full(8, 200))


def test_each_fails_for_itself(daemon):
    f = daemon.connection.build(kernels.add_one(8), name="plus")
    good, bad = np.zeros(8, "float32"), daemon.connection.array(np.zeros(9, "float32"))
    futures = [f.submit(good), f.submit(bad), f.submit(good)]
    with pytest.raises(kiln.InvalidArgument) as error:
        futures[1].result(60)
    assert error.value.message == "argument X of plus: dimension 0 is 9, but must be 8"
    for future in (futures[0], futures[2]):
        np.testing.assert_array_equal(future.result(60).numpy(), np.ones(8))


def test_a_cancelled_call_ends_on_the_daemon(daemon):
    f, g = endless(daemon.connection), daemon.connection.build(kernels.add_one(8))
    call = f.submit(1 << 42, np.ones(1, "float32"))
    time.sleep(0.3)
    begin = time.monotonic()
    assert call.cancel() and call.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        call.result()
    np.testing.assert_array_equal(g.submit(np.zeros(8, "float32")).result(60).numpy(), np.ones(8))
    assert time.monotonic() - begin < 10


def sum_over(*axes):
    """One sum, in order, over axes of these extents, some of which may be variables."""
    A = te.placeholder((1,), name="A")
    k = [te.reduce_axis((0, extent), name=f"k{i}") for i, extent in enumerate(axes)]
    C = te.compute((1,), lambda i: te.sum(te.sin(A[i] + sum(k).astype("float32")), axis=k), name="C")
    return [axis for axis in axes if isinstance(axis, te.Var)] + [A, C]


n, m = te.var("n"), te.var("m")


@pytest.mark.parametrize(
    "definition, sizes",
    [
        (sum_over(n), [1 << 40]),
        (sum_over(1 << 40), []),
        (sum_over(n, m), [1 << 20, 1 << 20]),
        (sum_over(n, m), [1 << 40, 3]),
        (sum_over(n, 3), [1 << 40]),
        (sum_over(2, 2, n, m), [1 << 22, 1 << 22]),
        (sum_over(2, 2, 1 << 22, 1 << 22), []),
    ],
    ids=["any", "long", "any-any", "long-short", "any-short", "deep-any", "deep-long"],
)
def test_a_cancelled_kernel_ends_by_itself(daemon, record_property, definition, sizes):
    """Wherever its loops are long; a worker whose kernel does not end is replaced, which takes a second."""
    f, g = daemon.connection.build(definition, name="long"), daemon.connection.build(kernels.add_one(8))
    x = np.zeros(8, "float32")
    g(x)
    workers = set(daemon.children("kiln-worker"))
    seconds = []
    for _ in range(3):
        call = f.submit(*sizes, np.ones(1, "float32"))
        time.sleep(0.15)
        begin = time.monotonic()
        assert call.cancel()
        np.testing.assert_array_equal(g(x).numpy(), np.ones(8))
        seconds.append(time.monotonic() - begin)
    record_property("from the cancellation to the answer of the next call", max(seconds))
    # 200 ms are promised; twice that, since other tests use this machine too.
    assert min(seconds) < 0.4
    # A compiler that begins has that name for an instant too.
    assert workers & set(daemon.children("kiln-worker")), "the worker was replaced"


def test_calls_under_way_outlive_a_worker(daemon):
    f = daemon.connection.build(kernels.add_one(1 << 16))
    x = np.zeros(1 << 16, "float32")
    f(x)
    futures = [f.submit(x) for _ in range(20)]
    os.kill(daemon.children("kiln-worker")[0], signal.SIGKILL)
    for future in futures:
        assert future.result(60).numpy()[0] == 1


def test_a_call_is_part_of_the_trace_of_its_process(daemon, monkeypatch):
    assert "trace" not in daemon.connection.build(kernels.add_one()).timings
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    with kiln.connect(daemon.address, default=False) as connection:
        f = connection.build(kernels.add_one(8), name="plus")
        x = np.zeros(8, "float32")
        f(x)
        assert f.timings["trace"] == "0af7651916cd43dd8448eb211c80319c"
        f.submit(x).result(60)
        assert f.timings["trace"] == "0af7651916cd43dd8448eb211c80319c"
        with pytest.raises(kiln.InvalidArgument):
            f(connection.array(np.zeros(9, "float32")))
    assert ", trace 0af7651916cd43dd8448eb211c80319c)" in daemon.log.read_text()


def test_another_client_does_not_wait_behind_a_long_call(daemon):
    f, g = endless(daemon.connection), daemon.connection.build(kernels.add_one(8))
    with kiln.connect(daemon.address, default=False) as other:
        h = other.build(kernels.add_one(8))
        call = f.submit(1 << 42, np.ones(1, "float32"))
        time.sleep(0.5)
        begin = time.monotonic()
        for _ in range(10):
            np.testing.assert_array_equal(h(np.zeros(8, "float32")).numpy(), np.ones(8))
        assert time.monotonic() - begin < 10
        assert call.running() and call.cancel()
    np.testing.assert_array_equal(g(np.zeros(8, "float32")).numpy(), np.ones(8))

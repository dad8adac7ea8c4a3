"""What the service promises, tried on a real daemon: one compile for all sizes, the same bits for any
number of threads, caches that survive restarts and damage, workers that may die."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import kernels
import kiln
from kiln import te


def random(*shape):
    return np.random.default_rng(7).uniform(-1, 1, size=shape).astype("float32")


def test_one_compile_serves_all_sizes_bit_for_bit(daemon):
    f = daemon.connection.build(kernels.cumsum(), name="myscan")
    for n in (1024, 1000, 31, 1, 0):
        x = random(10, n)
        result = f(x).numpy()
        assert result.tobytes() == np.cumsum(x, axis=0, dtype="float32").tobytes(), n
    assert daemon.connection.describe()["compiles"] == 1


def test_no_time_steps_at_all_are_refused_at_the_call(daemon):
    f = daemon.connection.build(kernels.cumsum(), name="myscan")
    with pytest.raises(kiln.InvalidArgument) as error:
        f(random(0, 8))
    assert error.value.message == (
        "argument X of myscan: dimension 0 is 0, but must be at least 1 (initial steps of scan)")


@pytest.mark.parametrize("kernel, shapes", [
    (kernels.cumsum(), [(10, 1000)]),
    (kernels.matmul(130, 70, 90), [(130, 70), (70, 90)]),
    (kernels.softmax(65, 129), [(65, 129)]),
])
def test_any_number_of_threads_gives_the_same_bits(start, kernel, shapes):
    inputs = [random(*shape) for shape in shapes]
    results = set()
    for threads in (1, 2, 3, 5, 16):
        daemon = start(threads=threads)
        results.add(daemon.connection.build(kernel)(*inputs).numpy().tobytes())
        assert daemon.stop() == 0
    assert len(results) == 1


def test_the_second_compile_comes_from_memory_and_after_a_restart_from_disk(start, folder):
    first = start()
    assert first.connection.build(kernels.add_one()).timings["cache"] == "compiled"
    assert first.connection.build(kernels.add_one()).timings["cache"] == "memory"
    assert first.stop() == 0
    second = start()
    f = second.connection.build(kernels.add_one())
    assert f.timings["cache"] == "disk"
    np.testing.assert_array_equal(f(np.zeros(64, "float32")).numpy(), np.ones(64, "float32"))
    assert second.connection.describe()["compiles"] == 0


def test_a_cubin_is_kept_across_restarts(start):
    """Code for a GPU that this host need not have; from disk without NVRTC, which takes 20 ms at least."""
    def compiled(daemon):
        f = daemon.connection.compile(kernels.add_one(), target="cuda", arch="sm_90")
        return f.timings["cache"], f.report()["kernels"]

    first = start()
    try:
        level, kernels_of_first = compiled(first)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")
    assert level == "compiled"
    assert compiled(first)[0] == "memory"
    assert first.stop() == 0
    second = start()
    assert compiled(second) == ("disk", kernels_of_first)
    assert second.connection.describe()["compiles"] == 0


def truncate(entry):
    entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])


def flip_a_bit(entry):
    data = bytearray(entry.read_bytes())
    data[len(data) * 3 // 4] ^= 4
    entry.write_bytes(data)


def empty(entry):
    entry.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty])
def test_a_damaged_cache_entry_is_compiled_again_with_a_warning(start, damage):
    first = start()
    first.connection.build(kernels.add_one())
    assert first.stop() == 0
    entries = list(first.cache.glob("artifacts/**/*.kart"))
    assert len(entries) == 1
    damage(entries[0])
    second = start()
    f = second.connection.build(kernels.add_one())
    assert f.timings["cache"] == "compiled"
    np.testing.assert_array_equal(f(np.zeros(64, "float32")).numpy(), np.ones(64, "float32"))
    assert "warn" in second.log.read_text()


def test_a_killed_worker_fails_no_call_for_long_and_loses_no_tensor(daemon):
    connection = daemon.connection
    f = connection.build(kernels.matmul(256, 256, 256))
    a, b = random(256, 256), random(256, 256)
    kept = kiln.nd.array(a, kiln.cpu(0))
    expected = f(a, b).numpy()
    slowest, wrong, errors = [0.0], [], []
    stop = threading.Event()

    def call():
        while not stop.is_set():
            begin = time.monotonic()
            try:
                if f(a, b).numpy().tobytes() != expected.tobytes():
                    wrong.append("a wrong result")
            except (kiln.Unavailable, kiln.ResourceExhausted) as error:
                errors.append(error)
            slowest[0] = max(slowest[0], time.monotonic() - begin)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.5)
        for pid in daemon.children("kiln-worker"):
            os.kill(pid, signal.SIGKILL)
    time.sleep(1.0)
    stop.set()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert not wrong
    assert slowest[0] < 2.0, f"a call took {slowest[0]:.2f} s"
    for error in errors:
        assert error.message
    np.testing.assert_array_equal(kept.numpy(), a)
    assert f(a, b).numpy().tobytes() == expected.tobytes()
    assert daemon.process.poll() is None


def test_a_measurement_that_is_interrupted_ends_between_two_runs(daemon):
    f = daemon.connection.build(kernels.add_one(8))
    x = random(8)
    expected = f(x).numpy()
    workers = set(daemon.children("kiln-worker"))

    def interrupt(signal_number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            f.time_evaluator(number=10**8)(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    begin = time.monotonic()
    assert f(x).numpy().tobytes() == expected.tobytes()
    assert time.monotonic() - begin < 2.0
    # A compiler that begins has that name for an instant too.
    assert workers & set(daemon.children("kiln-worker")), "the worker was replaced"


def test_a_killed_compiler_is_replaced(daemon):
    daemon.connection.build(kernels.add_one(8))
    for pid in daemon.children("kiln-compiler"):
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    f = daemon.connection.build(kernels.add_one(9))
    np.testing.assert_array_equal(f(np.zeros(9, "float32")).numpy(), np.ones(9, "float32"))


def test_cuda_without_a_gpu_is_one_sentence_and_the_daemon_lives(daemon):
    connection = daemon.connection
    if any(device["target"] == "cuda" for device in connection.describe()["devices"]):
        pytest.skip("this host has a CUDA device")
    with pytest.raises(kiln.Unavailable) as error:
        connection.build(kernels.add_one(), target="cuda")
    assert error.value.reason == "NO_DEVICE"
    assert "\n" not in error.value.message and len(error.value.message) < 300
    f = connection.build(kernels.add_one())
    np.testing.assert_array_equal(f(np.zeros(64, "float32")).numpy(), np.ones(64, "float32"))


def test_bad_requests_lose_nothing(daemon):
    connection = daemon.connection
    kept = kiln.nd.array(random(5, 5), kiln.cpu(0))
    f = connection.build(kernels.matmul(4, 5, 6), name="matmul")
    for bad in [(random(4, 5),), (random(4, 4), random(5, 6)), (random(4, 5), random(5, 6).astype("float64"))]:
        with pytest.raises(kiln.InvalidArgument):
            f(*bad)
    np.testing.assert_array_equal(kept.numpy(), random(5, 5))
    np.testing.assert_allclose(f(random(4, 5), random(5, 6)).numpy(), random(4, 5) @ random(5, 6), rtol=1e-5)


def test_sigterm_drains_and_exits_with_zero(daemon):
    f = daemon.connection.build(kernels.add_one())
    f(np.zeros(64, "float32"))
    begin = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - begin < 5.0


def test_a_kernel_without_end_ends_at_the_callers_timeout(daemon):
    """And with it on the daemon: the next call need not wait for it."""
    n = te.var("n")
    A = te.placeholder((1,), name="A")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((1,), lambda i: te.sum(te.sin(A[i] + k.astype("float32")), axis=k), name="C")
    f = daemon.connection.build([n, A, C], name="endless")
    x = random(1)
    for call in (lambda: f(1 << 42, x, timeout=0.5), lambda: f.submit(1 << 42, x, timeout=0.5).result()):
        begin = time.monotonic()
        with pytest.raises(kiln.DeadlineExceeded) as error:
            call()
        assert error.value.message == "endless did not end within its timeout of 0.5 s"
        assert time.monotonic() - begin < 3
    begin = time.monotonic()
    assert np.isfinite(f(3, x).numpy()).all()
    assert time.monotonic() - begin < 10  # a worker that does not answer is replaced within this

"""A daemon on the same host: arrays travel as memory, calls over a socket of their own."""

import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from expect import expect
from tree import find_program

import kiln
from kiln import te

LARGE = 300_001  # floats: more than travel in a message, and no whole number of pages


@pytest.fixture
def plus(daemon):
    x = te.placeholder((te.var("n"),), name="X")
    f = kiln.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")
    assert daemon.local
    return f


@pytest.fixture
def long(daemon):
    """A call of it takes minutes."""
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n,), name="X")
    j = te.reduce_axis((0, m), name="j")
    return kiln.build([x, te.compute((n,), lambda i: te.sum(te.sin(x[i] + j), axis=j), name="Y")], name="long")


@pytest.fixture
def start(short_folder):
    """start(ADDRESS) runs a daemon of the test's own."""
    program = find_program("kilnd")
    if program is None:
        pytest.skip("no kilnd was found: build it, or set KILN_DAEMON")
    running = []

    def run(address):
        with open(short_folder / "log", "ab") as log:
            process = subprocess.Popen([program, "--listen", address, "--cache-dir", short_folder / "cache"],
                                       stdout=subprocess.PIPE, stderr=log, text=True)
        running.append(process)
        line = process.stdout.readline()
        assert line.startswith("listening on "), (short_folder / "log").read_text()
        process.address = line.split()[-1]
        return process

    yield run
    for process in running:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


@pytest.fixture
def alone(start, short_folder):
    """A connection to a daemon that nobody else uses."""
    with kiln.connect(start(f"unix:{short_folder}/s").address, default=False) as connection:
        yield connection


def large(start=0):
    return np.arange(start, start + LARGE, dtype="float32")


def mappings(address):
    """The file behind the mapping at this address."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        begin, _, end = line.split()[0].partition("-")
        if int(begin, 16) <= address < int(end, 16):
            return line.split(maxsplit=5)[-1]
    return ""


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, LARGE, 2_000_000])
def test_arrays_come_back_as_they_were(daemon, size):
    values = np.arange(size, dtype="float32")
    array = kiln.nd.array(values)
    assert np.array_equal(array.numpy(), values)
    array.copyfrom(values[::-1])
    assert np.array_equal(array.numpy(), values[::-1])
    into = np.empty(size, "float32")
    array.copyto(into)
    assert np.array_equal(into, values[::-1])


def test_calls_take_and_give_memory(plus):
    values, out = large(), np.empty(LARGE, "float32")
    assert np.array_equal(plus(values).numpy(), values + 1)
    plus(values, out)
    assert np.array_equal(out, values + 1)
    small = np.zeros(4, "float32")
    plus(np.arange(4, dtype="float32"), small)
    assert small.tolist() == [1, 2, 3, 4]


def test_many_arrays_in_one_call(daemon):
    inputs = [te.placeholder((te.var("n"),), name=f"X{i}") for i in range(12)]
    f = kiln.build([*inputs, te.compute(inputs[0].shape, lambda i: sum(x[i] for x in inputs), name="Y")])
    for size in (1500, LARGE):
        values = [np.full(size, i, "float32") for i in range(12)]
        out = np.empty(size, "float32")
        f(*values, out)
        assert np.all(out == sum(range(12)))


def test_numpy_is_a_snapshot_that_may_be_written(plus):
    result = plus(large())
    first = result.numpy()
    first[0] = -1  # of this process alone
    assert result.numpy()[0] == 1
    plus(kiln.nd.array(large(100)), result)
    assert first[1] == 2 and result.numpy()[1] == 102
    result.copyfrom(large(7))
    assert first[1] == 2 and result.numpy()[1] == 8


def test_results_are_seen_without_a_copy(plus):
    result = plus(large())
    for view in (result.numpy(), np.from_dlpack(result), np.asarray(result)):
        assert "memfd:kiln-arena" in mappings(view.ctypes.data)
        assert np.array_equal(view, large() + 1)


def test_memory_outlives_the_array_and_is_given_back(alone):
    x = te.placeholder((te.var("n"),), name="X")
    plus = alone.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")
    values = plus(large()).numpy()
    alone.free()
    assert alone.describe()["tensors"] == 0
    assert np.array_equal(values, large() + 1)
    name = mappings(values.ctypes.data)
    place = values.ctypes.data
    assert name
    del values
    assert mappings(place) == ""


def test_the_daemon_counts_what_it_was_passed(alone):
    array = alone.array(large())
    assert alone.describe()["tensor_bytes"] == LARGE * 4
    del array
    alone.free()
    deadline = time.monotonic() + 10  # a busy daemon frees a little later
    while alone.describe()["tensor_bytes"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alone.describe()["tensor_bytes"] == 0


def test_errors_are_the_same(plus):
    a = kiln.nd.array(np.zeros(4, "float32"))
    expect(kiln.InvalidArgument, "argument Y of plus: dimension 0 is 5, but must be 4 (n, from dimension 0 of X)",
           lambda: plus(a, kiln.nd.empty(5)))
    expect(kiln.InvalidArgument, "argument X of plus is int32, but must be float32",
           lambda: plus(np.zeros(LARGE, "int32")))


def test_a_timeout_ends_a_call(long):
    begin = time.monotonic()
    expect(kiln.DeadlineExceeded, "long did not end within its timeout of 0.2 s",
           lambda: long(np.zeros(4, "float32"), m=1 << 40, timeout=0.2))
    assert time.monotonic() - begin < 10
    assert long(np.zeros(1, "float32"), m=1).numpy().tolist() == [0]


@pytest.fixture
def interruptible():
    """SIGINT interrupts, though a shell's job in the background is started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupting_the_wait_cancels_the_call(daemon, long, interruptible):
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        long(np.zeros(4, "float32"), m=1 << 40)
    timer.join()
    assert long(np.zeros(1, "float32"), m=1, timeout=60).numpy().tolist() == [0]


def test_threads_have_calls_of_their_own(plus):
    wrong = []

    def work(start):
        a, b = kiln.nd.array(large(start)), kiln.nd.empty(LARGE)
        for _ in range(20):
            plus(a, b)
            if not np.array_equal(b.numpy(), large(start) + 1):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(i * 1000,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_cannot_be_sealed_is_copied(plus, monkeypatch):
    seal = fcntl.fcntl

    def busy(fd, command, argument=0):
        if command == fcntl.F_ADD_SEALS and argument & fcntl.F_SEAL_WRITE:
            raise OSError(errno.EBUSY, "busy")
        return seal(fd, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", busy)
    assert np.array_equal(plus(large()).numpy(), large() + 1)


def test_no_descriptors_are_left(plus):
    def use():
        for i in range(20):
            values = plus(large(i)).numpy()
            plus(values, np.empty(LARGE, "float32"))

    use()
    before = len(os.listdir("/proc/self/fd"))
    use()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_calls_go_on_with_another_daemon(start, short_folder):
    first = start(f"unix:{short_folder}/s")
    with kiln.connect(first.address) as connection:
        x = te.placeholder((te.var("n"),), name="X")
        f = connection.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")])
        assert f(large()).numpy()[0] == 1
        first.kill()
        first.wait()
        start(f"unix:{short_folder}/s")
        assert np.array_equal(f(large()).numpy(), large() + 1)
        assert np.array_equal(f(large()).numpy(), large() + 1)
        assert connection.local


def test_over_tcp_arrays_travel_as_bytes(start):
    with kiln.connect(start("127.0.0.1:0").address, default=False) as connection:
        assert connection.local is None
        assert np.array_equal(connection.array(large()).numpy(), large())


def test_where_the_socket_cannot_be_reached_calls_take_the_long_way(start, short_folder):
    process = start(f"unix:{short_folder}/s")
    os.rename(short_folder / "s.local", short_folder / "elsewhere")
    with kiln.connect(process.address, default=False) as connection:
        assert connection.local is None
        assert np.array_equal(connection.array(large()).numpy(), large())


def test_the_example_of_a_fork_says_what_is_wrong(kilnd):
    code = f"""
import os, numpy as np, kiln
kiln.connect({kilnd!r})
a = kiln.nd.array(np.zeros(4, "float32"))
pid = os.fork()
if pid == 0:
    try:
        a.numpy()
    except kiln.Unavailable as error:
        os._exit(0 if error.reason == "FORKED" else 1)
    os._exit(2)
assert os.waitpid(pid, 0)[1] == 0
print(a.numpy().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[0.0, 0.0, 0.0, 0.0]\n", done.stderr

"""Processes that have done the same a hundred thousand times are as large as before. With KILN_LONG=1 a million times."""

import itertools
import os
import pathlib
import shutil
import subprocess
import time

import numpy as np
import pytest

import kiln
from kiln import te

CALLS = 1_000_000 if os.environ.get("KILN_LONG") else 20_000
MARGIN = 1 << 20  # bytes: pages that the allocator takes and gives back


def resident(daemon):
    """Bytes in memory of the daemon and its worker, and of this process, once what was let go is freed."""
    daemon.connection.free()
    time.sleep(0.5)  # until the worker is told, too
    pids = [daemon.process.pid, *daemon.children("kiln-worker"), os.getpid(), *daemon.children("kiln-compiler")[:1]]
    return [int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") for pid in pids]


def growth(daemon, action, count):
    """By how many bytes each process grows over the second half. A leak grows again, and memory that a thread more took
    while the machine was busy does not: where it is much, the lesser of that and of another half."""

    def half(before):
        for _ in range(count // 2):
            action()
        after = resident(daemon)
        return after, [now - then for then, now in zip(before, after)]

    after, _ = half([])
    after, grown = half(after)
    if max(grown) >= MARGIN:
        grown = [min(pair) for pair in zip(grown, half(after)[1])]
    return grown


@pytest.fixture
def plus(daemon):
    x = te.placeholder((te.var("n"),), name="X")
    return daemon.connection.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")


@pytest.fixture(params=["local", "usual"])
def way(daemon, request):
    """Calls over the local socket, and without it."""
    assert daemon.connection.local
    if request.param == "usual":
        daemon.connection.local.close()
        return 4
    return 1


def cached_calls(plus):
    a, b = kiln.nd.array(np.zeros(16, "float32")), kiln.nd.empty(16)
    return lambda: plus(a, b)


def test_cached_calls(daemon, plus, way):
    assert max(growth(daemon, cached_calls(plus), CALLS // way)) < MARGIN


def test_results_that_are_let_go(daemon, plus, way):
    values = np.zeros(20_000, "float32")  # more than travels in a message
    assert max(growth(daemon, lambda: plus(values).numpy(), CALLS // way // 10)) < MARGIN


def test_calls_that_fail(daemon, plus, way):
    a, b = kiln.nd.array(np.zeros(16, "float32")), kiln.nd.empty(17)

    def fail():
        with pytest.raises(kiln.InvalidArgument):
            plus(a, b)

    assert max(growth(daemon, fail, CALLS // way // 10)) < MARGIN


def failing_compiles(daemon):
    """Compiles, each of another kernel, which fail in the compiler."""
    numbers = itertools.count()

    def fail():
        x = te.placeholder((4,), name="X")
        k = te.reduce_axis((0, 1 << 20), name="k")
        number = next(numbers)
        y = te.compute((4,), lambda i: te.sum(x[i] * (k.astype("float32") + number), axis=k), name="Y")
        schedule = te.create_schedule(y.op)
        schedule[y].unroll(k)
        with pytest.raises(kiln.ResourceExhausted):
            daemon.connection.build(schedule, [x, y])

    return fail


def test_compiles_that_fail(daemon):
    """What LLVM takes at first it keeps."""
    assert max(growth(daemon, failing_compiles(daemon), 10_000 if CALLS == 1_000_000 else 600)) < 2 * MARGIN


@pytest.fixture
def leaky(start, tmp_path):
    """A daemon that leaks, and so do its workers and compilers: of what they free, one block in 8 is kept."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler here")
    library = tmp_path / "leak.so"
    source = "void __libc_free(void *);\nvoid free(void *p) { static unsigned n; if (!p || ++n % 8) __libc_free(p); }\n"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, "-xc", "-"], input=source, text=True, check=True)
    return start(environment={"LD_PRELOAD": str(library)})


def test_a_leak_is_seen_in_calls(leaky):
    x = te.placeholder((te.var("n"),), name="X")
    plus = leaky.connection.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")
    assert max(growth(leaky, cached_calls(plus), 20_000)) > 2 * MARGIN


def test_a_leak_is_seen_in_compiles(leaky):
    assert max(growth(leaky, failing_compiles(leaky), 600)) > 2 * MARGIN


def test_what_is_kept_is_seen_here(daemon, plus):
    """The same look at processes that do grow: two kilobytes a call."""
    kept, values = [], np.zeros(512, "float32")
    assert growth(daemon, lambda: kept.append(kiln.nd.array(values)), 4000)[0] > MARGIN

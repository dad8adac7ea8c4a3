"""Predictions from Python: the candidates with their bottlenecks, for the host and for CPUs that are not here."""

import re

import kiln
import pytest
from kiln import te


def matmul():
    n, l, m = te.var("n"), te.var("l"), te.var("m")
    a, b = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], (n, l, m)


def test_each_candidate_has_steps_and_bottlenecks(daemon):
    tensors, (n, l, m) = matmul()
    found = daemon.connection.predict(tensors, sizes={n: 256, "l": 256, "m": 256}, threads=1)
    assert "multiply-add" in found.machine and "GHz" in found.surroundings
    assert len(found.schedules) > 6
    for schedule in found.schedules:
        assert schedule.seconds > 0 and schedule.steps
        assert schedule.bound in schedule.terms
        assert schedule.seconds == pytest.approx(schedule.terms[schedule.bound] + schedule.terms["threads"])
    # Which is the cheapest differs from CPU to CPU.
    assert re.match(r"PredictedSchedule\(C: outer products( of \w+ panels)?\(rows=", repr(found.schedules[0]))
    assert repr(found).startswith(found.machine)


def test_cores_and_cpus_need_not_be_here(daemon):
    tensors, _ = matmul()
    sizes = {"n": 2048, "l": 2048, "m": 2048}

    def seconds(**options):
        return daemon.connection.predict(tensors, sizes=sizes, **options).schedules[0].seconds

    one = seconds(target="llvm -mcpu=znver4", threads=1)
    assert seconds(target="llvm -mcpu=znver4", threads=32) < one / 8
    assert seconds(target="llvm -mcpu=x86-64-v2", threads=1) > one


def test_the_threads_of_kernels_are_those_of_the_daemon(start):
    tensors, _ = matmul()
    sizes = {"n": 2048, "l": 2048, "m": 2048}

    def predicted(threads):
        daemon = start(threads=threads)
        found = daemon.connection.predict(tensors, sizes=sizes)
        assert daemon.stop() == 0
        return found

    one, four = predicted(1), predicted(4)
    assert "; 1 thread, " in one.surroundings and "; 4 threads, " in four.surroundings
    assert one.schedules[0].terms["arithmetic"] > 3 * four.schedules[0].terms["arithmetic"]


def test_a_size_that_is_missing_is_named(daemon):
    tensors, _ = matmul()
    with pytest.raises(kiln.InvalidArgument) as caught:
        daemon.connection.predict(tensors, sizes={"n": 8, "l": 8}, name="product")
    assert str(caught.value).startswith("a prediction of product is for certain sizes, but m is not given; give each size")

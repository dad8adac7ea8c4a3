"""The model of a fleet against the laws of queues that are known, and in what nobody needs a law for."""

import math
import sys

import pytest
from deployed import DEPLOY

sys.path.insert(0, str(DEPLOY / "capacity"))
from fleet_model import Fleet, Times, simulate  # noqa: E402

MU = 200.0  # kernels a second
ALONE = Times(kernel=1 / MU, call=0, compile=0)


def many(rate, **fleet):
    """So many clients that their calls come at random, `rate` a second in all."""
    return Fleet(clients=4000, think=4000 / rate, kernels=1, **fleet)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_one_server_is_a_queue_of_erlang(load):
    """M/M/1: the time of a call is exponential with rate mu - lambda."""
    result = simulate(many(load * MU), Times(kernel=1 / MU, call=0, compile=0, spread=1.0), calls=60_000)
    left = MU - load * MU
    assert result.throughput == pytest.approx(load * MU, rel=0.03)
    assert result.busy == pytest.approx(load, rel=0.03)
    assert result.median == pytest.approx(math.log(2) / left, rel=0.1)
    assert result.p99 == pytest.approx(math.log(100) / left, rel=0.15)


def test_clients_that_do_not_think_keep_a_server_busy():
    result = simulate(Fleet(clients=10, think=0, kernels=1), ALONE, calls=2000)
    assert result.throughput == pytest.approx(MU, rel=0.01)
    assert result.median == pytest.approx(10 / MU, rel=0.01)


def test_few_clients_are_repairmen_and_machines():
    """Two clients, exponential thinking and service of the same rate: a server is busy 4/5 of the time."""
    result = simulate(Fleet(clients=2, think=1 / MU, kernels=1), Times(kernel=1 / MU, call=0, compile=0, spread=1.0),
                      calls=60_000)
    assert result.busy == pytest.approx(4 / 5, rel=0.03)


def test_a_core_is_shared_evenly_where_turns_are_short():
    """The same two clients on a host with one core, and devices enough: how long calls take in particular does not matter where
    all get the same share (4/5 for equal times as for exponential ones); one after the other the core would be busy
    1 / (1 + exp(-1) / 2) = 0.845 of the time."""
    result = simulate(Fleet(servers=1000, clients=2, think=1 / MU, kernels=1, policy="round_robin", cores=1, turn=1e-3), ALONE, calls=60_000)
    assert result.throughput == pytest.approx(4 / 5 * MU, rel=0.015)


def test_a_work_stays_on_its_core():
    """Of three works on two cores two share one of them to their end, though the other one has nothing left to do."""
    result = simulate(Fleet(servers=1000, clients=3, think=0, kernels=1, policy="round_robin", cores=2, turn=1e-3), ALONE, calls=4000)
    assert result.throughput == pytest.approx(2 * MU, rel=0.02)  # a new one finds the idle core at once
    assert 2 / MU <= result.p99 <= 2 / MU + 3e-3  # and turns of others


def test_servers_in_turn_share_evenly_and_homes_do_not():
    busy = dict(servers=10, clients=1000, think=0.6, kernels=50, skew=1.0)
    in_turn = simulate(Fleet(policy="round_robin", **busy), ALONE, calls=40_000)
    at_home = simulate(Fleet(policy="affinity", **busy), ALONE, calls=40_000)
    assert in_turn.throughput == pytest.approx(1000 / (0.6 + in_turn.median), rel=0.05)
    assert at_home.p99 > 2 * in_turn.p99


def test_a_kernel_is_compiled_once_for_the_fleet_or_once_a_server():
    fleet = dict(servers=8, clients=50, think=0.1, kernels=30, skew=0.0)
    times = Times(compile=1e-3)
    assert simulate(Fleet(policy="affinity", **fleet), times).compiles == 30
    alone = simulate(Fleet(policy="round_robin", shared_cache=False, **fleet), times)
    assert alone.compiles == 8 * 30
    shared = simulate(Fleet(policy="round_robin", **fleet), times)
    assert 30 <= shared.compiles < 60  # two servers may miss it at the same time


def test_what_all_share_one_host_is_bounded_by_its_cores():
    result = simulate(Fleet(servers=4, clients=50, think=0.0, kernels=1, policy="round_robin", cores=2),
                      Times(kernel=1 / MU, call=1 / MU, compile=0), calls=4000)
    limit = 2 / (2 / MU)
    assert 0.95 * limit < result.throughput <= 1.001 * limit  # works stay where they are, so a core idles now and then


def test_calls_are_drawn_from_measured_ones():
    """A tail that was measured is predicted: one call in twenty takes ten times as long."""
    calls = ((1e-3, 1e-3),) * 19 + ((18e-3, 2e-3),)
    alone = simulate(Fleet(clients=1, think=0, kernels=1, cores=2), Times(compile=0, measured=calls), calls=20_000)
    assert alone.median == pytest.approx(2e-3)
    assert alone.p99 == pytest.approx(20e-3)
    assert alone.throughput == pytest.approx(1 / (19 / 20 * 2e-3 + 1 / 20 * 20e-3), rel=0.03)


def test_the_cost_is_that_of_the_servers():
    result = simulate(many(MU / 2, servers=2, price=3.6, policy="round_robin"), ALONE)
    assert result.cost == pytest.approx(2 * 3.6 / 3600 / (MU / 2) * 1e6, rel=0.03)

"""Three daemons and a Redis as one fleet: how calls are divided, and what callers see of a server that is lost."""

import collections
import concurrent.futures
import pathlib
import shutil
import signal
import socket
import tempfile
import types

import fleets
import numpy as np
import pytest
from fleets import Callers, counted, kernel, right, total, wait_until

import kiln
from kiln import te
from kiln._service import fleet_call
from kiln._service.member import NotHere

CALLS = 3000
KERNELS = 40
X = np.arange(4, dtype="float32")


@pytest.fixture
def redis():
    redis = fleets.Redis()
    yield redis
    redis.end()


@pytest.fixture
def servers(programs, redis):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-"))
    started = [fleets.Server(programs / "bin" / "kilnd", folder / str(number), "--shared-cache", redis.url)
               for number in range(3)]
    yield started
    fleets.end_all(started)
    shutil.rmtree(folder)


@pytest.fixture
def fleet(servers):
    with kiln.Fleet([server.address for server in servers]) as fleet:
        yield fleet


def test_calls_in_turn_and_one_compile_for_all(servers):
    with kiln.Fleet(",".join(s.address for s in servers), policy="round_robin") as fleet:
        f = kernel(fleet)
        assert right(f)  # alone, so that the others find it in the Redis
        wait_until(lambda: right(f) and right(f) and total(fleet, "shared_hits"))
        assert right(f) and right(f)
        before = counted(fleet, "runs")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _: right(f), range(CALLS)))
        after = counted(fleet, "runs")
        assert {after[address] - before[address] for address in after} == {CALLS // 3}
        assert total(fleet, "compiles") == 1
        assert total(fleet, "shared_hits") == 2


def test_each_kernel_has_a_home(fleet):
    homes = collections.Counter()
    for number in range(KERNELS):
        f = kernel(fleet, number)
        before = counted(fleet, "runs")
        assert all(right(f, number) for _ in range(3))
        after = counted(fleet, "runs")
        (home,) = [address for address in after if after[address] != before[address]]
        assert home == f.home and after[home] - before[home] == 3
        homes[home] += 1
    assert len(homes) == 3 and min(homes.values()) >= 5, homes
    assert total(fleet, "compiles") == KERNELS
    assert total(fleet, "shared_hits") == 0
    # Another client, whose program is another text, comes to the same homes.
    with kiln.Fleet(",".join(reversed(list(homes)))) as other:
        A = te.placeholder((4,), name="A")
        before = total(other, "memory_hits")
        for number in range(KERNELS):
            B = te.compute((4,), lambda i: A[i] + float(number), name="B")
            assert right(other.build([A, B], name=f"add_{number}"), number)
        assert total(other, "memory_hits") - before == KERNELS


@pytest.mark.parametrize("policy", ["affinity", "round_robin"])
def test_nobody_sees_that_a_server_was_killed(servers, policy):
    with kiln.Fleet([s.address for s in servers], policy=policy) as fleet, Callers(fleet) as callers:
        home = kernel(fleet, 0).home
        called = next(server for server in servers if server.address == home)
        called.end(signal.SIGKILL)
        callers.go_on()
        assert fleet.servers[called.address] is False
        called.start()
        wait_until(lambda: fleet.servers[called.address])
        callers.go_on()


def test_nobody_sees_that_servers_are_replaced_one_by_one(servers, fleet):
    with Callers(fleet) as callers:
        for server in servers:
            callers.go_on()
            assert server.end() == 0  # all that it had begun was answered
            callers.go_on()
            server.start()
            wait_until(lambda: fleet.servers[server.address])  # as Kubernetes waits before it takes the next
        callers.go_on()


def test_calls_wait_for_a_fleet_that_is_away_for_a_moment(servers, fleet):
    f = kernel(fleet)
    assert right(f)
    for server in servers:
        server.end(signal.SIGKILL)
    waiting = f.submit(X)
    for server in servers:
        server.start()
    assert np.array_equal(waiting.result(60), X + 1)


def test_each_compiles_for_itself_while_the_redis_is_lost(redis, servers):
    with kiln.Fleet([s.address for s in servers], policy="round_robin") as fleet, Callers(fleet) as callers:
        redis.end()
        callers.go_on()
        f = kernel(fleet, 100)
        assert all(right(f, 100) for _ in servers)
        assert sum(fleet.servers.values()) == 3
        redis.start()
        callers.go_on()


def test_large_arrays_come_and_go(fleet):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    double = fleet.build([A, te.compute((n,), lambda i: A[i] * 2.0, name="B")])
    values = np.random.default_rng(1).random(1 << 20, "float32")
    assert np.array_equal(double(values), values * 2)
    out = np.empty_like(values)
    assert double(values, out=out) is out and np.array_equal(out, values * 2)
    result = double(values[:3])
    result += 1  # the caller's own
    assert double(np.empty(0, "float32")).shape == (0,)


def test_an_array_leads_calls_to_the_server_where_it_lives(servers, fleet):
    f, g = kernel(fleet, 1), kernel(fleet, 2)
    away = next(address for address in fleet.servers if address != f.home)
    array = fleet.connection(away).array(X)
    before = counted(fleet, "runs")
    y = f(array)
    assert isinstance(y, type(array)) and np.array_equal(g(A=y).numpy(), X + 3)
    assert counted(fleet, "runs") == {**before, away: before[away] + 2}
    # Of two that live apart, the second comes through the client.
    other = fleet.connection(f.home).array(X)
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    add = fleet.build([a, b, te.compute((4,), lambda i: a[i] + b[i], name="c")])
    assert np.array_equal(add(array, other).numpy(), 2 * X)
    next(s for s in servers if s.address == away).end(signal.SIGKILL)
    with pytest.raises(kiln.Unavailable) as caught:
        f(array)
    assert caught.value.reason == "UNREACHABLE" and away in caught.value.message
    assert right(f)


def test_what_a_call_says_of_its_arguments_is_said_as_ever(fleet):
    f = kernel(fleet)
    with pytest.raises(kiln.InvalidArgument) as caught:
        f(np.zeros(3, "float32"))
    assert caught.value.reason == "ARGUMENT_SHAPE"
    assert all(fleet.servers.values())
    with pytest.raises(kiln.DeadlineExceeded) as caught:
        spin(fleet)(np.ones(1, "float32"), timeout=0.2)
    assert caught.value.message == "spin did not end within its timeout of 0.2 s"


def spin(fleet):
    """A kernel that takes minutes."""
    A = te.placeholder((1,), name="A")
    k, m = te.reduce_axis((0, 1 << 20), name="k"), te.reduce_axis((0, 1 << 20), name="m")
    B = te.compute((1,), lambda i: te.sum(te.sin(A[i] * (k + m).astype("float32")), axis=[k, m]), name="B")
    return fleet.build([A, B], name="spin")


def test_what_is_said_when_nobody_answers():
    nobody = f"127.0.0.1:{fleets.free_port()}"
    with kiln.Fleet([nobody]) as fleet:
        f = kernel(fleet)
        with pytest.raises(kiln.Unavailable) as caught:
            f(X)
        assert caught.value.reason == "FLEET"
        assert caught.value.message == (f"no server of the fleet answers: nothing listens at {nobody}: start kilnd "
                                        "there, or correct the address")
        with pytest.raises(kiln.Unavailable) as caught:
            fleet.connection(nobody)
        assert caught.value.reason == "UNREACHABLE"
    with pytest.raises(kiln.Unavailable) as caught:
        f(X)
    assert (caught.value.reason, caught.value.message) == ("CLOSED", "the fleet is closed")


def test_what_is_said_of_a_fleet_that_is_none(monkeypatch):
    monkeypatch.delenv("KILN_ADDRESS", raising=False)
    monkeypatch.setenv("KILN_PROFILE", "")

    def refused(*args, **named):
        with pytest.raises(kiln.InvalidArgument) as caught:
            kiln.Fleet(*args, **named)
        return caught.value.message

    assert refused(["a:1"], policy="random") == "the policy of a fleet is 'random'; known: affinity, round_robin"
    nothing = 'a fleet needs addresses: Fleet(["a:7411", "b:7411"]), or KILN_ADDRESS'
    assert refused() == refused([]) == refused(" ") == nothing
    assert refused(["a:1", "b"]) == "the address b is neither HOST:PORT nor unix:PATH"
    with kiln.Fleet(["a:1", "b:1"]) as fleet, pytest.raises(kiln.InvalidArgument) as caught:
        fleet.connection("c:1")
    assert caught.value.message == "c:1 is no server of this fleet; there are a:1, b:1"


class Fails:
    """In place of a server: what a call meets there."""

    def __init__(self, failure):
        self.up, self.tried, self._failure = True, 0, failure

    def connection(self):
        self.tried += 1
        raise self._failure

    def lost(self):
        self.up = False


def errand(monkeypatch, servers):
    monkeypatch.setattr(fleet_call, "_PAUSES", ())
    function = types.SimpleNamespace(servers=lambda: servers)
    with pytest.raises(kiln.Error) as caught:
        fleet_call._Errand(function, (), {}).run()
    return caught.value


def test_a_call_that_ends_servers_does_not_end_them_all(monkeypatch):
    servers = [Fails(NotHere(kiln.Unavailable(f"{n} did not answer", "UNREACHABLE"), transport=True)) for n in range(9)]
    assert errand(monkeypatch, servers).message == "2 did not answer"
    assert [server.tried for server in servers] == [1, 1, 1] + [0] * 6
    assert [server.up for server in servers] == [False] * 3 + [True] * 6


def test_servers_that_have_too_much_to_do_are_not_lost(monkeypatch):
    full = kiln.ResourceExhausted("256 calls wait already", "QUEUE_FULL")
    servers = [Fails(NotHere(full, pause=0.1)), Fails(NotHere(kiln.Unavailable("the daemon is ending", "DRAINING"), 1.0))]
    assert errand(monkeypatch, servers) is full
    assert [server.up for server in servers] == [True, False]


def test_what_may_have_overwritten_its_input_is_not_repeated(fleet, monkeypatch):
    f = kernel(fleet)
    assert right(f)
    finished = []

    def lost_amid(call, reply):
        finished.append(call)
        raise NotHere(kiln.Unavailable("lost", "UNREACHABLE"), transport=True)

    monkeypatch.setattr(fleet_call._Call, "finish", lost_amid)
    with pytest.raises(kiln.Unavailable) as caught:
        f(X, out=X)
    assert caught.value.message == "lost" and len(finished) == 1
    with pytest.raises(kiln.Unavailable):
        f(X, out=np.empty(4, "float32"))
    assert len(finished) == 1 + 3


def test_a_name_stands_for_servers_that_come_and_go(servers, monkeypatch):
    port = servers[0].address.rpartition(":")[2]
    named = ["127.0.0.1"]
    getaddrinfo = socket.getaddrinfo

    def looked_up(host, port, *rest, **more):
        if host != "kiln.test":
            return getaddrinfo(host, port, *rest, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in named]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    with kiln.Fleet(f"kiln.test:{port}") as fleet:
        assert list(fleet.servers) == [f"127.0.0.1:{port}"]
        f = kernel(fleet)
        assert right(f)
        named[:] = ["127.0.0.3", "::1"]
        fleet.look_up()
        # What answers stays, for the arrays that live there; nobody has seen that the new ones do not.
        assert list(fleet.servers) == [f"127.0.0.3:{port}", f"[::1]:{port}", f"127.0.0.1:{port}"]
        assert right(f)
        servers[0].end()
        wait_until(lambda: not fleet.servers[f"127.0.0.1:{port}"])
        fleet.look_up()
        assert list(fleet.servers) == [f"127.0.0.3:{port}", f"[::1]:{port}"]
        named.clear()  # the name server is away
        fleet.look_up()
        assert len(fleet.servers) == 2


def test_a_function_lists_the_servers(servers):
    listed = [server.address for server in servers[:2]]
    with kiln.Fleet(lambda: listed) as fleet:
        f = kernel(fleet)
        assert right(f) and list(fleet.servers) == listed
        listed.append(servers[2].address)
        fleet.look_up()
        assert list(fleet.servers) == listed

        def away():
            raise OSError("whoever lists them is away")

        fleet._find = away
        fleet.look_up()
        assert len(fleet.servers) == 3 and right(f)

"""A model of a fleet of kilnd, by discrete events: how many calls a second it answers, how long the slowest of a hundred
take, and what a million calls cost, for so many servers and clients. Table of docs/fleet.md:

    python deploy/capacity/fleet_model.py --servers 1 10 100 1000 --clients 10 100 1000 10000 100000

A client calls a kernel, waits for the answer, thinks, and calls again. A call waits for a kernel that its server does not
have yet (found in the shared cache, or compiled by the server's one compiler, once for all calls that wait), then for the
server's device, which runs one kernel at a time. Where servers and clients are on one host (`cores`), all of them share its
processors. The times are measured ones (measure.py); what a fleet of many hosts would have more of, a network between
them, is `network`.
"""

import argparse
import collections
import dataclasses
import heapq
import itertools
import math
import random


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds; all but the kernel's as docs/performance/data_path.md has them."""

    kernel: float = 5e-3  # on the device
    call: float = 0.3e-3  # what client and front end add to a call
    compile: float = 10e-3
    shared: float = 1e-3  # a kernel from the shared cache: found, sent, loaded
    network: float = 0.0  # there and back
    spread: float = 0.0  # of the kernel's time, its coefficient of variation; 1 is exponential
    measured: tuple = ()  # (kernel, call) of single calls, drawn in place of these; the slowest of a hundred follow from them


@dataclasses.dataclass(frozen=True)
class Fleet:
    servers: int = 1
    clients: int = 10
    think: float = 1.0  # mean seconds between an answer and the client's next call
    kernels: int = 200  # that clients call
    skew: float = 0.8  # of their popularity, Zipf's exponent
    policy: str = "affinity"  # or round_robin
    shared_cache: bool = True
    cores: int = 0  # of one host that all share, clients too; 0: each server has a host of its own
    turn: float = 4e-3  # of who computes on a core that others want: Linux's 2.8 ms, up to the next of 250 ticks a second
    price: float = 0.4  # of a server, an hour


@dataclasses.dataclass(frozen=True)
class Result:
    throughput: float  # calls a second
    median: float  # seconds
    p99: float
    busy: float  # of the devices, on average
    compiles: int
    cost: float  # of a million calls

    def __str__(self):
        return (f"{self.throughput:10.0f}/s   median {1e3 * self.median:8.2f} ms   p99 {1e3 * self.p99:9.2f} ms   "
                f"busy {100 * self.busy:3.0f} %   compiles {self.compiles:6d}   {self.cost:8.2f} a million calls")


class _Cores:
    """Processors of one host, as Linux gives them away: a new work goes to a core that is idle, else to any one, where it
    stays, and a core runs its works in turns (EEVDF ends none for another that comes). Balancing between cores takes longer
    than such works do: newidle_balance() leaves a core alone that is idle for shorter than it takes."""

    def __init__(self, count, turn, model):
        self._turn, self._model = turn, model
        self._cores = [collections.deque() for _ in range(count)]  # [seconds left, what comes then]; the first one runs

    def work(self, seconds, then):
        core = next((core for core in self._cores if not core), None)
        if core is None:
            core = self._model.any_of(self._cores)
        core.append([seconds, then])
        if len(core) == 1:
            self._run(core)

    def _run(self, core):
        seconds = min(core[0][0], self._turn)
        self._model.after(seconds, lambda: self._has_run(core, seconds))

    def _has_run(self, core, seconds):
        work = core.popleft()
        work[0] -= seconds
        is_over = work[0] < 1e-9
        if not is_over:
            core.append(work)
        if core:
            self._run(core)
        if is_over:
            work[1]()


class _Queue:
    """So many places, each for one at a time, in the order in which they came."""

    def __init__(self, places):
        self._free = places
        self._waiting = collections.deque()

    def enter(self, go):
        """Calls `go` when there is a place, now perhaps."""
        if self._free:
            self._free -= 1
            go()
        else:
            self._waiting.append(go)

    def leave(self):
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1


class Model:
    def __init__(self, fleet, times, seed=1):
        self.fleet, self.times = fleet, times
        self.now, self.compiles = 0.0, 0
        self._random = random.Random(seed)
        self._events, self._number = [], itertools.count()
        self._devices = [_Queue(1) for _ in range(fleet.servers)]
        self._compilers = [_Queue(1) for _ in range(fleet.servers)]
        self._cores = _Cores(fleet.cores, fleet.turn, self) if fleet.cores else None
        self._loaded = {}  # (server, kernel) -> the calls that wait for it, or None when it is there
        self._shared = set()  # kernels of the shared cache
        self._homes = [self._random.randrange(fleet.servers) for _ in range(fleet.kernels)]
        self._turn = itertools.count(self._random.randrange(fleet.servers))
        self._popular = list(itertools.accumulate((k + 1.0) ** -fleet.skew for k in range(fleet.kernels)))
        self._seconds, self._ends, self._worked = [], [], 0.0

    def run(self, calls):
        """What is seen of so many calls, after as many that warm the fleet up."""
        for _ in range(self.fleet.clients):
            self.after(self._think(), self._call)
        self._until(calls)
        begin, self._seconds, self._ends, self._worked = self.now, [], [], 0.0
        self._until(calls)
        elapsed = self.now - begin
        ordered = sorted(self._seconds)
        rate = len(ordered) / elapsed
        return Result(rate, ordered[len(ordered) // 2], ordered[math.ceil(0.99 * len(ordered)) - 1],
                      self._worked / elapsed / self.fleet.servers, self.compiles,
                      self.fleet.servers * self.fleet.price / 3600 / rate * 1e6)

    def _until(self, calls):
        while len(self._seconds) < calls:
            self.now, _, happen = heapq.heappop(self._events)
            happen()

    def after(self, seconds, happen):
        heapq.heappush(self._events, (self.now + seconds, next(self._number), happen))

    def any_of(self, some):
        return self._random.choice(some)

    def _think(self):
        return self._random.expovariate(1 / self.fleet.think) if self.fleet.think else 0.0

    # A call, step by step.

    def _compute(self, seconds, then):
        """On a core of the host that all share, or on the host that a server has to itself."""
        if self._cores:
            self._cores.work(seconds, then)
        else:
            self.after(seconds, then)

    def _call(self):
        begin = self.now
        (kernel,) = self._random.choices(range(self.fleet.kernels), cum_weights=self._popular)
        server = self._homes[kernel] if self.fleet.policy == "affinity" else next(self._turn) % self.fleet.servers
        seconds, call = self._seconds_of_a_call()

        def wait_for_device():
            self._devices[server].enter(lambda: self._run(server, seconds, call, begin))

        self.after(self.times.network / 2,
                   lambda: self._compute(call / 2, lambda: self._when_loaded(server, kernel, wait_for_device)))

    def _seconds_of_a_call(self):
        spread, measured = self.times.spread, self.times.measured
        if measured:
            return self._random.choice(measured)
        if not spread:
            return self.times.kernel, self.times.call
        return self._random.gammavariate(spread**-2, self.times.kernel * spread**2), self.times.call

    def _when_loaded(self, server, kernel, go):
        waiting = self._loaded.get((server, kernel), self)
        if waiting is None:
            go()
        elif waiting is not self:
            waiting.append(go)
        else:
            self._loaded[server, kernel] = [go]
            self._load(server, kernel)

    def _load(self, server, kernel):
        if self.fleet.shared_cache and kernel in self._shared:
            self.after(self.times.shared, lambda: self._is_loaded(server, kernel))
            return

        def compiled():
            self._compilers[server].leave()
            self.compiles += 1
            self._shared.add(kernel)
            self._is_loaded(server, kernel)

        self._compilers[server].enter(lambda: self._compute(self.times.compile, compiled))

    def _is_loaded(self, server, kernel):
        waiting, self._loaded[server, kernel] = self._loaded[server, kernel], None
        for go in waiting:
            go()

    def _run(self, server, seconds, call, begin):
        self._worked += seconds

        def ended():
            self._devices[server].leave()
            self.after(self.times.network / 2, lambda: self._compute(call / 2, lambda: self._answered(begin)))

        self._compute(seconds, ended)

    def _answered(self, begin):
        self._seconds.append(self.now - begin)
        self.after(self._think(), self._call)


def simulate(fleet, times, calls=None, seed=1):
    return Model(fleet, times, seed).run(calls or max(20_000, 2 * fleet.clients))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--clients", type=int, nargs="+", default=[10, 100, 1000, 10_000, 100_000])
    numbers = [field for field in dataclasses.fields(Times) if field.type in (float, "float")]
    for field in numbers:
        parser.add_argument(f"--{field.name}", type=float, default=field.default)
    for name, kind in (("think", float), ("kernels", int), ("skew", float), ("price", float), ("policy", str)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Fleet, name))
    parser.add_argument("--without-shared-cache", action="store_true")
    given = parser.parse_args()
    times = Times(**{field.name: getattr(given, field.name) for field in numbers})
    for servers, clients in itertools.product(given.servers, given.clients):
        fleet = Fleet(servers, clients, given.think, given.kernels, given.skew, given.policy,
                      not given.without_shared_cache, price=given.price)
        print(f"{servers:5d} servers {clients:7d} clients {simulate(fleet, times)}", flush=True)


if __name__ == "__main__":
    main()

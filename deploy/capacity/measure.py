"""Measures what fleet_model.py needs to know, and compares what it predicts with 1 to 4 daemons on this host:

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python deploy/capacity/measure.py

Daemons and clients share the cores of this host, which the model is told. What else the host does it is not told: on one that
is busy, put `nice -n -10` before the command. It ends with 1 where a prediction is more than a fifth off.
"""

import argparse
import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import numpy as np
from fleet_model import Fleet, Times, simulate

import kiln
from kiln import te

KERNEL_SECONDS = 5e-3
CLIENTS = 8
THINK = 25e-3
FAR = 0.2  # off
X = np.linspace(0, 1, 64, dtype="float32")


@contextlib.contextmanager
def daemons(count, *flags):
    """The addresses of so many, each with one thread and a cache of its own."""
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
        started = [subprocess.Popen(
            [os.environ["KILN_DAEMON"], "--listen", "127.0.0.1:0", "--threads", "1", "--log-level", "error",
             "--cache-dir", pathlib.Path(folder, str(number)), *flags], stdout=subprocess.PIPE, text=True)
            for number in range(count)]
        try:
            yield [each.stdout.readline().split()[-1] for each in started]
        finally:
            for each in started:
                each.terminate()
            for each in started:
                each.wait()


def kernel(fleet, terms, name="busy"):
    """Takes as long as there are terms."""
    A = te.placeholder((64,), name="A")
    k = te.reduce_axis((0, terms), name="k")
    return fleet.build([A, te.compute((64,), lambda i: te.sum(te.sqrt(A[i] + k), axis=k), name="B")], name=name)


def seconds_of(call, times=300):
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def measured_times():
    """Of one client alone, and the terms that make a kernel of KERNEL_SECONDS."""
    with daemons(1) as addresses, kiln.Fleet(addresses) as fleet:
        connection = fleet.connection(addresses[0])

        def kernel_seconds(function):
            on_one, taken = function.on(connection), []
            for _ in range(100):
                function(X)
                taken.append(on_one.timings["kernel"])
            return statistics.median(taken)

        few = 20_000
        terms = int(few * KERNEL_SECONDS / kernel_seconds(kernel(fleet, few)))
        busy = kernel(fleet, terms)
        seconds = kernel_seconds(busy)
        call = max(seconds_of(lambda: busy(X)) - seconds, 0.0)
        compiles = [kernel(fleet, terms + n, f"new_{n}").on(connection).timings["compile"] for n in range(1, 6)]
        return Times(kernel=seconds, call=call, compile=statistics.median(compiles)), terms


def single_calls(terms, seconds):
    """(kernel, call) of the calls of one client that thinks between them: the device's time, and the rest."""
    with daemons(1) as addresses, kiln.Fleet(addresses) as fleet:
        busy = kernel(fleet, terms)
        on_one, taken, end = busy.on(fleet.connection(addresses[0])), [], time.perf_counter() + seconds
        busy(X)
        while time.perf_counter() < end:
            time.sleep(THINK)
            begin = time.perf_counter()
            busy(X)
            whole, device = time.perf_counter() - begin, on_one.timings["kernel"]
            taken.append((device, max(whole - device, 0.0)))
        return taken


def client(addresses, terms, seconds, seed, begin, answers):
    """A process that calls and thinks; puts the seconds that its calls took."""
    with kiln.Fleet(addresses, policy="round_robin") as fleet:
        busy = kernel(fleet, terms)
        for _ in addresses:
            busy(X)
        choices, taken = random.Random(seed), []
        begin.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            time.sleep(choices.expovariate(1 / THINK))
            start = time.perf_counter()
            busy(X)
            taken.append(time.perf_counter() - start)
        answers.put(taken)


def observed(count, terms, seconds):
    """The seconds that calls took CLIENTS that think between them."""
    spawn = multiprocessing.get_context("spawn")
    begin, answers = spawn.Barrier(CLIENTS), spawn.Queue()
    with daemons(count) as addresses:
        clients = [spawn.Process(target=client, args=(addresses, terms, seconds, n, begin, answers)) for n in range(CLIENTS)]
        for each in clients:
            each.start()
        taken = list(itertools.chain.from_iterable(answers.get() for _ in clients))
        for each in clients:
            each.join()
        return taken


def compared(count, terms, times, seconds, turns):
    """(measured, predicted) of calls a second, median and 99th percentile."""
    # What else the host does changes from minute to minute, so calls alone and those of many are measured in turns.
    single, many = [], []
    for _ in range(turns):
        single += single_calls(terms, seconds / turns / 2)
        many += observed(count, terms, seconds / turns)
    ordered = sorted(many)
    fleet = Fleet(count, CLIENTS, THINK, kernels=1, policy="round_robin", cores=os.cpu_count())
    said = simulate(fleet, dataclasses.replace(times, measured=tuple(single)))
    seen = len(many) / seconds, ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    return list(zip(seen, (said.throughput, said.median, said.p99)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemons", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--turns", type=int, default=4)
    given = parser.parse_args()
    times, terms = measured_times()
    print(f"{CLIENTS} clients that think for {1e3 * THINK:.0f} ms; a kernel {1e3 * times.kernel:.2f} ms, a call "
          f"{1e3 * times.call:.2f} ms more, a compile {1e3 * times.compile:.1f} ms")
    print("| daemons | calls a second: measured, predicted | median, ms | p99, ms |\n|---|---|---|---|")
    most = 0.0
    for count in given.daemons:
        (rate, rate_said), *waits = compared(count, terms, times, given.seconds, given.turns)
        cells = [f"{rate:.0f}, {rate_said:.0f}", *(f"{1e3 * seen:.1f}, {1e3 * said:.1f}" for seen, said in waits)]
        print(f"| {count} | {' | '.join(cells)} |", flush=True)
        most = max(most, *(abs(said / seen - 1) for seen, said in [(rate, rate_said), *waits]))
    print(f"at most {100 * most:.0f} % off")
    return most > FAR


if __name__ == "__main__":
    raise SystemExit(main())

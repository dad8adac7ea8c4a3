"""Measures what fleet_model.py needs to know, and compares what it predicts with 1 to 4 daemons on this host:

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python deploy/capacity/measure.py

Daemons, clients and whatever else the host does share its cores here, which the model is told.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np
from fleet_model import Fleet, Times, simulate

import kiln
from kiln import te

KERNEL_SECONDS = 5e-3
CLIENTS = 8
THINK = 15e-3
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
    return fleet.build([A, te.compute((64,), lambda i: te.sum(te.sin(A[i] * k), axis=k), name="B")], name=name)


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

        terms = int(1000 * KERNEL_SECONDS / kernel_seconds(kernel(fleet, 1000)))
        busy = kernel(fleet, terms)
        seconds = kernel_seconds(busy)
        call = max(seconds_of(lambda: busy(X)) - seconds, 0.0)
        compiles = [kernel(fleet, terms + n, f"new_{n}").on(connection).timings["compile"] for n in range(1, 6)]
        return Times(kernel=seconds, call=call, compile=statistics.median(compiles)), terms


def single_calls(terms, seconds):
    """(kernel, call) of one client's calls: the device's time, and the rest."""
    with daemons(1) as addresses, kiln.Fleet(addresses) as fleet:
        busy = kernel(fleet, terms)
        on_one, taken, end = busy.on(fleet.connection(addresses[0])), [], time.perf_counter() + seconds
        busy(X)
        while time.perf_counter() < end:
            begin = time.perf_counter()
            busy(X)
            whole, device = time.perf_counter() - begin, on_one.timings["kernel"]
            taken.append((device, max(whole - device, 0.0)))
        return taken


def observed(count, terms, seconds):
    """The seconds that calls took CLIENTS that think between them."""
    with daemons(count) as addresses, kiln.Fleet(addresses, policy="round_robin") as fleet:
        busy = kernel(fleet, terms)
        for _ in range(2 * count):
            busy(X)
        taken, end = [], time.perf_counter() + seconds

        def client(seed):
            choices = random.Random(seed)
            while time.perf_counter() < end:
                time.sleep(choices.expovariate(1 / THINK))
                begin = time.perf_counter()
                busy(X)
                taken.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--turns", type=int, default=4)
    given = parser.parse_args()
    times, terms = measured_times()
    print(f"a kernel {1e3 * times.kernel:.2f} ms, a call {1e3 * times.call:.2f} ms more, a compile {1e3 * times.compile:.1f} ms")
    print("servers   calls a second: measured, predicted      median ms           p99 ms")
    for count in (1, 2, 3, 4):
        # What else the host does changes from minute to minute, so calls alone and those of many are measured in turns.
        single, many = [], []
        for _ in range(given.turns):
            single += single_calls(terms, given.seconds / given.turns / 2)
            many += observed(count, terms, given.seconds / given.turns)
        ordered = sorted(many)
        rate, median, p99 = len(many) / given.seconds, ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
        times = dataclasses.replace(times, measured=tuple(single))
        fleet = Fleet(count, CLIENTS, THINK, kernels=1, policy="round_robin", cores=os.cpu_count())
        said = simulate(fleet, times)
        print(f"{count:7d} {rate:24.0f} {said.throughput:10.0f} {1e3 * median:12.1f} {1e3 * said.median:8.1f} "
              f"{1e3 * p99:10.1f} {1e3 * said.p99:8.1f}", flush=True)


if __name__ == "__main__":
    main()

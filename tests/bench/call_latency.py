"""How long a call of a cached tiny kernel takes, client and all; prints a table, judges nothing.

    build/venv/bin/python tests/bench/call_latency.py [CALLS]
"""

import sys
import time

import numpy as np

import kiln
from kiln import te


def measured(calls, action):
    for _ in range(200):
        action()
    seconds = np.empty(calls)
    for i in range(calls):
        begin = time.perf_counter()
        action()
        seconds[i] = time.perf_counter() - begin
    return seconds * 1e6


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    x = te.placeholder((te.var("n"),), name="X")
    f = kiln.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="add_one")
    values = np.zeros(16, "float32")
    a, b, out = kiln.nd.array(values), kiln.nd.empty(16), np.empty(16, "float32")
    table = [
        ("f(a, b), both on the daemon", calls, lambda: f(a, b)),
        ("f(a), a new array as result", calls // 10, lambda: f(a)),
        ("f(x, y), numpy in and out", calls // 10, lambda: f(values, out)),
        ("nd.array of 16 numbers", calls // 10, lambda: kiln.nd.array(values)),
        (".numpy() of 16 numbers", calls // 10, a.numpy),
    ]
    print(f"{'us':32} {'p50':>8} {'p90':>8} {'p99':>8} {'calls':>8}")
    for name, count, action in table:
        seconds = measured(count, action)
        print(f"{name:32} {np.percentile(seconds, 50):8.0f} {np.percentile(seconds, 90):8.0f} "
              f"{np.percentile(seconds, 99):8.0f} {count:8}")
    f(a, b)
    print({key: round(value * 1e6, 1) for key, value in f.timings.items() if key != "cache"}, "us")


main()

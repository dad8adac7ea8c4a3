"""One peer in a process of its own, which compare.py starts: commands and answers are lines of JSON."""

import importlib
import json
import os
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr
os.dup2(2, 1)

import numpy as np  # noqa: E402

import random_definitions  # noqa: E402
from workloads import WORKLOADS  # noqa: E402


def seconds_of(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def turn(action, budget):
    """Seconds of each run in about this time; the first, which wakes caches and threads, does not count."""
    if hasattr(action, "timed"):
        return action.timed(budget)
    times = [seconds_of(action)]
    if times[0] >= budget:
        return times
    times, end = [], time.perf_counter() + budget
    while not times or (time.perf_counter() < end and len(times) < 20_000):
        times.append(seconds_of(action))
    return times


class Worker:
    def __init__(self, peer, threads):
        self.peer = importlib.import_module(f"peers.{peer}_peer").Peer(threads)
        self.action = None

    def load(self, workload, result):
        """Builds the workload and saves what it computes."""
        self.action = None  # memory of the last one goes first
        workload = WORKLOADS.get(workload) or random_definitions.named(workload)
        method = getattr(self.peer, workload.op, None)
        if method is None:
            return {"absent": True}
        begin = time.perf_counter()
        self.action = method(*workload.inputs(), **workload.attrs)
        if self.action is None:
            return {"absent": True}
        built = time.perf_counter() - begin
        np.save(result, self.peer.get(self.action()))
        return {"build_seconds": built}

    def turn(self, budget):
        return {"times": turn(self.action, budget)}

    def calls(self, budget):
        """Of Kiln: the kernel within whole calls."""
        return {"times": self.action.in_calls(budget) if hasattr(self.action, "in_calls") else []}


def main():
    try:
        worker = Worker(sys.argv[1], int(sys.argv[2]))
        print(json.dumps({"ready": True}), file=answers, flush=True)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)
        return
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


main()

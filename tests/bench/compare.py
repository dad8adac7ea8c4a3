"""Kiln against other systems: the same data, in the same run, taking turns. Prints a table and judges nothing.

    python tests/bench/compare.py                                     all: some 40 minutes
    python tests/bench/compare.py --workload 'matmul*' --threads 1 --peer kiln --peer numpy
    python tests/bench/compare.py --random 7                          definitions drawn at random: random_definitions.py
    python tests/bench/compare.py --avx2                              all with the instructions of AVX2 alone, where peers can be told so

Runs in an environment that has the Python client and the peers one wants (all: tests/bench/requirements.txt); peers that
are not installed are named. KILN_DAEMON says which kilnd is measured. Every peer runs in a process of its own, on as many
cores as it may use threads, and is stopped while it is not its turn. The figure is the median over the turns of each turn's
median run; results are checked against numpy in float64.

Kiln's figure is the time of the kernel on resident tensors, that of the others the time of a call from Python. "In a call" is
how many times as long Kiln's kernel takes within a call whose arrays were just sent.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy as np

import avx2
import random_definitions
import references
import report
from peers import NAMES
from workloads import GROUPS

HERE = pathlib.Path(__file__).resolve().parent
# Settings of a user's shell that would change what is measured.
_SETTINGS = ("OPENBLAS_", "OMP_", "MKL_", "DNNL_", "ONEDNN_", "ATEN_", "XLA_", "HL_", "TVM_", "KILN_ADDRESS", "KILN_CPU")


def environment(threads, folder, only_avx2):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_SETTINGS)}
    pools = {f"{pool}_NUM_THREADS": str(threads) for pool in ("OMP", "OPENBLAS", "MKL")}
    # Two threads that spin on one core would take turns there, milliseconds each.
    pools["OMP_PROC_BIND"] = "true"
    # malloc keeps what was freed: else fresh pages would be most of a large output's time.
    malloc = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(256 << 20)}
    # A daemon of this run's own, and nothing from the cache of another build.
    folders = {f"XDG_{use}": folder for use in ("RUNTIME_DIR", "CACHE_HOME")}
    return {**kept, **pools, **malloc, **folders, "JAX_PLATFORMS": "cpu", **(avx2.ENVIRONMENT if only_avx2 else {})}


class Process:
    """A peer in a process group of its own, stopped between its turns."""

    def __init__(self, peer, threads, folder, log, only_avx2):
        cores = sorted(os.sched_getaffinity(0))[:threads]
        self.process = subprocess.Popen(
            [sys.executable, HERE / "worker.py", peer, str(threads)],
            env=environment(threads, folder, only_avx2), text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )  # fmt: skip
        self.missing = self._answer().get("missing")

    def ask(self, **command):
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"its process ended with {self.process.wait()}", "missing": "it ended"}
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGSTOP)
        return json.loads(line)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGCONT)
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def deviation(result, wanted):
    """Of the largest value; infinite where the shapes differ."""
    if result.shape != np.shape(wanted):
        return float("inf")
    return float(np.max(np.abs(result - wanted)) / max(np.max(np.abs(wanted)), 1e-30))


def load_all(workload, processes):
    """{peer: {}} for those that compute the workload, and {"error": ...} for those that fail at it."""
    wanted = getattr(references, workload.op)(
        *(x.astype("float64") for x in workload.inputs()), **workload.attrs
    )
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, process in processes.items():
            path = f"{folder}/{name}.npy"
            answer = process.ask(do="load", workload=workload.name, result=path)
            if "absent" in answer:
                continue
            if "error" not in answer:
                off = deviation(np.load(path), wanted)
                answer = {} if off <= workload.tolerance else {"error": f"wrong by {off:.2g} of the largest"}
            results[name] = answer
    return results


def take_turns(names, processes, rounds, budget):
    """{peer: the median seconds of each of its turns, or {"error"}}"""
    turns = {name: [] for name in names}
    for _ in range(rounds):
        for name, medians in turns.items():
            if isinstance(medians, dict):
                continue
            answer = processes[name].ask(do="turn", budget=budget)
            if "error" in answer:
                turns[name] = {"error": answer["error"]}
            else:
                medians.append(float(np.median(answer["times"])))
    return turns


def measure(workload, processes, rounds, budget):
    """{peer: {"seconds", "rate", "spread"} or {"error"}}, and of Kiln "in_a_call", in seconds"""
    results = load_all(workload, processes)
    able = [name for name, result in results.items() if "error" not in result]
    for name, medians in take_turns(able, processes, rounds, budget).items():
        if isinstance(medians, dict):
            results[name] = medians
            continue
        seconds = float(np.median(medians))
        low, high = np.percentile(medians, [25, 75])
        results[name] = {
            "seconds": seconds, "rate": workload.rate(seconds), "spread": float((high - low) / seconds),
        }  # fmt: skip
    if "rate" in results.get("kiln", {}):
        times = processes["kiln"].ask(do="calls", budget=budget).get("times")
        if times:
            results["kiln"]["in_a_call"] = float(np.median(times))
    return results


def machine_limits(threads, folder, only_avx2):
    """{"fma_gflops", "triad_gbs"} of so many cores."""
    program = f"{folder}/limits"
    cpu = "haswell" if only_avx2 else "native"
    subprocess.run(["g++", "-O3", f"-march={cpu}", "-pthread", "-o", program, HERE / "limits.cc"], check=True)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
    found = subprocess.run(
        ["taskset", "-c", cores, program, str(threads)], check=True, capture_output=True
    )
    return json.loads(found.stdout)


def run(threads, options, data):
    """Measures what was chosen with so many threads, into data["results"]."""
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        log = open(options.out.with_suffix(".log"), "a")
        data["limits"][str(threads)] = machine_limits(threads, folder, options.avx2)
        processes = {}
        try:
            for name in options.peer or (avx2.PEERS if options.avx2 else NAMES):
                process = Process(name, threads, folder, log, options.avx2)
                if process.missing:
                    data["missing"][name] = process.missing
                    process.close()
                else:
                    processes[name] = process
            results = data["results"].setdefault(str(threads), {})
            for workload in options.workloads:
                results[workload.name] = measure(workload, processes, options.rounds, options.budget)
                print(report.line(workload, results[workload.name]), flush=True)
                options.out.write_text(json.dumps(data, indent=1))
        finally:
            for process in processes.values():
                process.close()
            subprocess.run(["pkill", "-f", f"kilnd.*{folder}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", choices=NAMES, help="one of the peers; all")
    parser.add_argument("--workload", action="append", help="a name or a pattern such as 'matmul*'; all")
    parser.add_argument("--threads", type=int, action="append", help="1 and 2")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each peer (%(default)s)")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of a turn (%(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("compare.json"),
                        help="the figures; beside it the table (.md) and the plot (.png) (%(default)s)")  # fmt: skip
    parser.add_argument("--random", type=int, metavar="SEED",
                        help="definitions drawn at random instead of the fixed ones")  # fmt: skip
    parser.add_argument("--avx2", action="store_true",
                        help="as on a CPU with AVX2 alone, of peers those that can be told so")  # fmt: skip
    options = parser.parse_args()
    groups = GROUPS if options.random is None else {"random": random_definitions.drawn(options.random)}
    known = [workload for group in groups.values() for workload in group]
    patterns = options.workload or ["*"]
    options.workloads = [
        workload for workload in known
        if any(fnmatch.fnmatch(workload.name, pattern) for pattern in patterns)
    ]  # fmt: skip
    if not options.workloads:
        there = ", ".join(workload.name for workload in known)
        parser.error(f"no workload fits {', '.join(patterns)}; there are {there}")
    # sys.exit ends the peers' processes on the way.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    data = {"limits": {}, "missing": {}, "results": {}}
    for threads in options.threads or (1, 2):
        run(threads, options, data)
    options.out.with_suffix(".md").write_text(report.markdown(data, groups))
    report.plot(data, groups, options.out.with_suffix(".png"))
    print(f"\n{report.summary(data)}\nwritten: {options.out} and beside it .md and .png")


if __name__ == "__main__":
    main()

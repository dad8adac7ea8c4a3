"""The whole models of examples/models and the training of examples/mnist.py against other systems: the same weights and
data in one run, each system in a process of its own, taking turns. Prints a table and judges nothing.

    python tests/bench/models.py                                  all models, all systems that are installed
    python tests/bench/models.py --model resnet --batch 16 --peer kiln --peer torch --turns 20

Runs in an environment that has the Python client and the peers one wants (tests/bench/requirements.txt). KILN_DAEMON says
which kilnd is measured. `first` is the time until the first result, with compiling; `best` the fastest run; `memory` the
most that the process, or Kiln's daemon and its workers, had resident. Results are compared with Kiln's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("kiln", "torch", "inductor", "jax", "onnxruntime")
MODELS = ("resnet", "lstm", "gpt2", "mnist")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--peer", choices=PEERS, action="append")
    parser.add_argument("--batch", type=int, default=1, help="images of resnet, sequences of lstm")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="small sizes: whether it works, not how fast it is")
    return parser.parse_args()


class Peer:
    """A system's process: it says how long its first run took, and then runs at each line it gets."""

    def __init__(self, name, model, options, folder):
        self.name, self.result = name, pathlib.Path(folder) / f"{name}.npy"
        pools = {f"{pool}_NUM_THREADS": str(options.threads) for pool in ("OMP", "OPENBLAS", "MKL")}
        # A daemon of this run's own, and nothing from the cache of another.
        folders = {f"XDG_{use}": folder for use in ("RUNTIME_DIR", "CACHE_HOME")}
        environment = {**os.environ, **pools, **folders, "JAX_PLATFORMS": "cpu"}
        request = {"model": model, "batch": options.batch, "threads": options.threads, "small": options.small}
        cores = sorted(os.sched_getaffinity(0))[: options.threads]
        self.process = subprocess.Popen(
            [sys.executable, HERE / "models_worker.py", name, json.dumps(request), self.result],
            env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )  # fmt: skip
        self.times = []
        first = self.process.stdout.readline()
        self.absent = None if first else self.process.stderr.read().strip().splitlines()[-1:]
        self.first = json.loads(first) if first else None

    def turn(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self.times.append(json.loads(self.process.stdout.readline()))

    def end(self):
        """The most memory, in MB."""
        self.process.stdin.close()
        memory = json.loads(self.process.stdout.readline())
        self.process.wait()
        return memory


def measure(model, options):
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        peers = []
        for name in options.peer or PEERS:
            peer = Peer(name, model, options, folder)
            if peer.absent is None:
                peers.append(peer)
            else:
                print(f"{model}: {name} is left out: {''.join(peer.absent)}")
        for _ in range(options.turns):
            for peer in peers:
                peer.turn()
        wanted = np.load(peers[0].result)
        for peer in peers:
            memory, got = peer.end(), np.load(peer.result)
            error = np.abs(got - wanted).max() / np.abs(wanted).max()
            print(
                f"{model:8} {peer.name:12} first {peer.first:7.2f} s   best {min(peer.times) * 1e3:9.2f} ms   "
                f"memory {memory:7.0f} MB   off by {error:.1e}"
            )


def main():
    options = arguments()
    for model in options.model or MODELS:
        measure(model, options)


if __name__ == "__main__":
    main()

"""One system of models.py in a process of its own: builds the model, says how long its first run took, then runs once for
each line it reads and says how long that took; at the end of its input, how much memory it had."""

import importlib
import json
import os
import pathlib
import resource
import sys
import time

answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr
os.dup2(2, 1)

import numpy as np  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES / "models"), str(EXAMPLES), str(pathlib.Path(__file__).parent)]


class Sizes:
    """What a model is built with."""

    def __init__(self, request):
        small = request["small"]
        self.batch, self.threads = request["batch"], request["threads"]
        self.image = 40 if small else 224
        self.steps, self.hidden = (5, 32) if small else (100, 512)
        self.layers, self.width, self.words = (2, 128, 100) if small else (12, 768, 50257)
        self.places, self.tokens = (64, 20) if small else (1024, 512)


def kiln_memory():
    """Of the daemon and its workers, the most that each had, in MB."""
    import kiln

    daemon = kiln.describe()["pid"]
    total = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if "VmHWM" in fields and daemon in (int(fields["Pid"]), int(fields["PPid"])):
            total += int(fields["VmHWM"].split()[0]) / 1024
    return total


def main():
    name, request, path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    begin = time.perf_counter()
    action = getattr(importlib.import_module(f"model_peers.{name}_models"), request["model"])(Sizes(request))
    np.save(path, np.asarray(action()))

    def say(value):
        print(json.dumps(value), file=answers, flush=True)

    say(time.perf_counter() - begin)
    for _ in sys.stdin:
        begin = time.perf_counter()
        action()
        say(time.perf_counter() - begin)
    say(kiln_memory() if name == "kiln" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()

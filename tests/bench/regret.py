"""Regret: how much longer the schedule that is chosen takes than the fastest of its space, for problems drawn at random.

    KILN_ADDRESS=unix:/tmp/k.sock python tests/bench/regret.py --count 300 --seed 1
    python tests/bench/regret.py --count 20 --seconds 3          a bounded look
    python tests/bench/regret.py --predict --threads 1           and what the cheapest prediction would be worth

Sizes of 1 to 8,192, ranks, types, transposed factors and fused chains. `tune` measures the candidates of each, of which it
has as many as --seconds allow; its first is what is chosen unmeasured. Prints a line a problem, then the median and the 95th
percentile, and keeps all of it by the model of the CPU in tests/bench/results, so that a change fitted to one shows on the
others. Run it against a daemon of its own: what tune finds is kept there.

With --predict, the schedule that is predicted to be the cheapest (`kiln schedule explain`) is measured too where it is not
the one that is taken, in turns with that: who is right, and the regret that taking it would have had."""

import argparse
import json
import math
import pathlib
import random
import re

import numpy as np

import kiln
from kiln import te

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
WORK = 2e9  # operations of the largest problem
TURNS = 3  # of a schedule that is predicted to be cheaper and the one that is taken
SECONDS = 0.03  # of a turn
BYTES = 256e6  # and its tensors


def size(choice, most=8192):
    """As often of one magnitude as of another; often a round one."""
    value = int(2 ** choice.uniform(0, math.log2(most)))
    return min(most, max(16, value // 16 * 16)) if choice.random() < 0.5 else max(1, value)


def product(choice):
    types = choice.choice((("float32",) * 3, ("float32",) * 3, ("float64",) * 3, ("bfloat16", "bfloat16", "float32"),
                           ("int8", "int8", "int32"), ("uint8", "int8", "int32")))  # fmt: skip
    batch = choice.choice((1, 1, 1, choice.randint(2, 64)))
    m, k, n = size(choice), size(choice), size(choice)
    a_first, b_first = choice.random() < 0.3, choice.random() < 0.3
    name = f"{'x'.join(map(str, (batch, m, k, n)))} of {types[0]}{', A transposed' * a_first}{', B transposed' * b_first}"
    if batch * m * k * n * 2 > WORK:
        return None

    def make():
        a = te.placeholder((batch, k, m) if a_first else (batch, m, k), dtype=types[0], name="A")
        b = te.placeholder((batch, n, k) if b_first else (batch, k, n), dtype=types[1], name="B")
        r = te.reduce_axis((0, k), name="k")

        def term(h, i, j):
            x, y = a[h, r, i] if a_first else a[h, i, r], b[h, j, r] if b_first else b[h, r, j]
            return te.sum(x.astype(types[2]) * y.astype(types[2]), axis=r)

        return [a, b, te.compute((batch, m, n), term, name="C")]

    return f"product {name}", make


def reduction(choice):
    shape = [size(choice) for _ in range(choice.randint(1, 3))]
    over = choice.randrange(len(shape))
    kind = choice.choice(("sum", "max"))
    if math.prod(shape) * 4 > BYTES or shape[over] < 2:
        return None

    def make():
        x = te.placeholder(shape, name="X")
        r = te.reduce_axis((0, shape[over]), name="r")
        left = shape[:over] + shape[over + 1 :]
        combine = te.sum if kind == "sum" else te.max

        def term(*index):
            return combine(x(*index[:over], r, *index[over:]), axis=r)

        return [x, te.compute(left or (), term, name="Y")]

    return f"{kind} of {'x'.join(map(str, shape))} over axis {over}", make


def chain(choice):
    shape = [size(choice) for _ in range(choice.randint(1, 3))]
    if math.prod(shape) * 16 > BYTES:
        return None
    turned = len(shape) > 1 and choice.random() < 0.4

    def make():
        x = te.placeholder(shape, name="X")
        y = te.placeholder(shape[::-1] if turned else shape, name="Y")
        z = te.compute(shape, lambda *i: x(*i) * 2.0 + y(*(i[::-1] if turned else i)), name="Z")
        return [x, y, te.compute(shape, lambda *i: te.max(z(*i), 0.0) * z(*i), name="W")]

    return f"chain of {'x'.join(map(str, shape))}{', one transposed' * turned}", make


def normalised(choice):
    rows, columns = size(choice), size(choice)
    if rows * columns * 8 > BYTES or columns < 2:
        return None

    def make():
        x = te.placeholder((rows, columns), name="X")
        k, l = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="l")
        top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="top")
        power = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="power")
        total = te.compute((rows,), lambda i: te.sum(power[i, l], axis=l), name="total")
        return [x, te.compute((rows, columns), lambda i, j: power[i, j] / total[i], name="Y")]

    return f"softmax of {rows}x{columns}", make


FAMILIES = (product, product, product, reduction, chain, normalised)


def problems(seed, count):
    choice = random.Random(seed)
    drawn = []
    while len(drawn) < count:
        problem = choice.choice(FAMILIES)(choice)
        if problem is not None:
            drawn.append(problem)
    return drawn


def model():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = {key: re.search(rf"^{key}\s*:\s*(.*)$", text, re.M) for key in ("model name", "cpu family", "model")}
    return {key: found.group(1).strip() if found else "" for key, found in fields.items()}


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, math.ceil(part * len(values)) - 1)]


def runner(tensors, schedule):
    """A function that measures a run of the definition under a predicted schedule."""
    steps = "\n".join(schedule.steps)
    written = kiln.parse_schedule(f"schedule cpu {{\n{steps}\n}}", tensors)
    function = kiln.build(written, tensors, target="llvm", name="regret")
    random, device = np.random.default_rng(0), kiln.cpu()
    arrays = []
    for tensor in tensors[:-1]:
        type_ = kiln.nd.empty((1,), tensor.dtype).numpy().dtype
        arrays.append(kiln.nd.array(random.integers(0, 100, tensor.shape).astype(type_), device))
    arrays.append(kiln.nd.empty(tensors[-1].shape, tensors[-1].dtype, device))

    def run(number):
        return min(function.time_evaluator(function.entry_name, device, number=number, repeat=1)(*arrays).results)

    once = min(run(1), run(1))
    number = max(1, int(SECONDS / once))
    return lambda: run(number)


def prediction(tensors, threads):
    """What the schedules are predicted to take of which one is taken, and what they take where they are not the same."""
    taken, *others = kiln.predict(tensors, target="llvm", name="regret", threads=threads).schedules
    cheapest = min([taken, *others], key=lambda schedule: schedule.seconds)
    found = {"taken": taken.seconds, "cheapest": cheapest.seconds, "schedule": cheapest.name}
    if cheapest.seconds < taken.seconds:
        runs = runner(tensors, taken), runner(tensors, cheapest)
        turns = [[run() for run in runs] for _ in range(TURNS)]
        found["taken runs"], found["cheapest runs"] = (min(times) for times in zip(*turns))
    return found


def judge(rows, threshold):
    """Where another schedule is predicted to be so many times as fast as the one taken: how often it is faster, and the
    regret of taking it there."""
    claims = [row for row in rows if row["prediction"]["taken"] > threshold * row["prediction"]["cheapest"]]
    faster = sum(row["prediction"]["cheapest runs"] < row["prediction"]["taken runs"] for row in claims)
    regrets = []
    for row in rows:
        regret = row["regret"]
        if row in claims:
            regret *= row["prediction"]["cheapest runs"] / row["prediction"]["taken runs"]
        regrets.append(max(regret, 1.0))
    return {"times": threshold, "claims": len(claims), "faster": faster, "median": round(percentile(regrets, 0.5), 3),
            "95th percentile": round(percentile(regrets, 0.95), 3), "most": round(max(regrets), 3)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--note", default="", help="said of the run in its file")
    parser.add_argument("--skip", type=int, default=0, help="go on after so many problems of the run that is in the file")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--threads", type=int, default=0, help="of the daemon, for predictions")
    given = parser.parse_args()
    cpu = model()
    file = RESULTS / f"regret-{'-'.join(re.findall('[A-Za-z0-9]+', ' '.join(cpu.values())))}.json"
    rows, alone = [], 0
    if given.skip:
        before = json.loads(file.read_text())
        assert before["seed"] == given.seed, f"the run in {file.name} has the seed {before['seed']}"
        rows, alone = before["problems"], before["summary"]["problems with one way to run"]
    for name, make in problems(given.seed, given.count)[given.skip :]:
        *inputs, output = make()
        try:
            result = kiln.tune([*inputs, output], target="llvm", name="regret", seconds=given.seconds, progress=False)
        except kiln.Unsupported:  # there is one way to run it
            alone += 1
            continue
        rows.append({"problem": name, "chosen": result.default_seconds, "best": result.seconds,
                     "regret": round(result.speedup, 3), "candidates": len(result.trials),
                     "fastest": result.candidate})  # fmt: skip
        if given.predict:
            rows[-1]["prediction"] = prediction([*inputs, output], given.threads)
        print(f"{result.speedup:6.3f}  {result.default_seconds * 1e6:10.1f} us  {len(result.trials):4d}  {name}", flush=True)
    regrets = [row["regret"] for row in rows]
    summary = {"median": percentile(regrets, 0.5), "95th percentile": percentile(regrets, 0.95), "most": max(regrets)}
    summary["problems with one way to run"] = alone
    if given.predict:
        summary["cheapest prediction"] = [judge(rows, times) for times in (1.0, 1.2, 1.5, 2.0, 3.0)]
    print(summary)
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps({"cpu": cpu, "seed": given.seed, "seconds": given.seconds, "note": given.note,
                                "summary": summary, "problems": rows}, indent=1) + "\n")  # fmt: skip
    print(file)


if __name__ == "__main__":
    main()

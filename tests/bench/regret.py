"""Regret: how much longer the schedule that is chosen takes than the fastest of its space, for problems drawn at random.

    KILN_ADDRESS=unix:/tmp/k.sock python tests/bench/regret.py --count 300 --seed 1
    python tests/bench/regret.py --count 20 --seconds 3          a bounded look

Sizes of 1 to 8,192, ranks, types, transposed factors and fused chains. `tune` measures the candidates of each, of which it
has as many as --seconds allow; its first is what is chosen unmeasured. Prints a line a problem, then the median and the 95th
percentile, and keeps all of it by the model of the CPU in tests/bench/results, so that a change fitted to one shows on the
others. Run it against a daemon of its own: what tune finds is kept there."""

import argparse
import json
import math
import pathlib
import random
import re

import kiln
from kiln import te

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
WORK = 2e9  # operations of the largest problem
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--note", default="", help="said of the run in its file")
    given = parser.parse_args()
    rows, alone = [], 0
    for name, make in problems(given.seed, given.count):
        *inputs, output = make()
        try:
            result = kiln.tune([*inputs, output], target="llvm", name="regret", seconds=given.seconds, progress=False)
        except kiln.Unsupported:  # there is one way to run it
            alone += 1
            continue
        rows.append({"problem": name, "chosen": result.default_seconds, "best": result.seconds,
                     "regret": round(result.speedup, 3), "candidates": len(result.trials),
                     "fastest": result.candidate})  # fmt: skip
        print(f"{result.speedup:6.3f}  {result.default_seconds * 1e6:10.1f} us  {len(result.trials):4d}  {name}", flush=True)
    regrets = [row["regret"] for row in rows]
    summary = {"median": percentile(regrets, 0.5), "95th percentile": percentile(regrets, 0.95), "most": max(regrets)}
    summary["problems with one way to run"] = alone
    print(summary)
    cpu = model()
    file = RESULTS / f"regret-{'-'.join(re.findall('[A-Za-z0-9]+', ' '.join(cpu.values())))}.json"
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps({"cpu": cpu, "seed": given.seed, "seconds": given.seconds, "note": given.note,
                                "summary": summary, "problems": rows}, indent=1) + "\n")  # fmt: skip
    print(file)


if __name__ == "__main__":
    main()

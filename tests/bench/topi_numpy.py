"""Operators of topi without a schedule against numpy: right in two types, and how fast. Prints a table, judges nothing.

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python tests/bench/topi_numpy.py            all
    ... topi_numpy.py softmax conv                                                                 those with these words
    ... topi_numpy.py --page > docs/topi_speed.md                                                  the page of the documentation

The rows are in topi_rows.py and topi_nn_rows.py. The error is the largest, relative to the largest value of numpy's result in
float64. Kiln's time is that of the kernel on resident arrays, numpy's that of the call; both take turns, and the shortest of all
turns counts. On a machine that does something else, Kiln's threads wait for each other: the figures say nothing.
"""

import argparse
import math
import os
import sys
import time

import numpy as np
import topi_nn_rows  # noqa: F401
from topi_rows import ROWS

import kiln
from kiln import te

TURNS = 7
REST = 0.02  # seconds without work before each turn, in which somebody else may have the core

HEAD = """\
# topi against numpy

Every operator of topi without a schedule, as it is after an import, beside numpy {numpy} on the same arrays, in two types. Sizes are
odd, so that no vector is full at the end of a row. The error is the largest, relative to the largest value of numpy's result in
float64. Kiln's time is that of the kernel on arrays of the daemon, with {threads} threads; numpy's is that of the call, on one thread but
for products. Where numpy is faster the ratio is bold; where numpy has no function and the reference is a loop of Python, there is
none. [topi, name by name](topi.md) says what each takes, and `tests/e2e/test_topi.py` compares more uses of each with numpy.

{machine}

```sh
python tests/bench/topi_numpy.py
```

"""


FOOT = """
What falls short most:

- `sort`, `topk` and their kin compare every pair of a row of up to 4,096 elements and are a network from there on: a definition has
  no loops that depend on data.
- `power` of float64 is a function of the C library, called element by element.
- The gradient of an average over windows, `random.normal` and `nn.dilate`: why was not looked into.
"""


def seconds(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def exact_of(row, values, of_type):
    """What numpy gives in float64, of the numbers that the kernel is given; in their own type where that is what it is about."""
    wide = [x.astype("float64") if x.dtype.kind == "f" and not of_type else x for x in values]
    with np.errstate(all="ignore"):
        return np.asarray(row.reference(*wide, **of_type))


def error_of(found, exact):
    """The largest difference, relative to the largest value; nan where shapes or places of nan differ."""
    if found.shape != exact.shape:
        return math.nan
    if found.dtype.kind in "biu" and exact.dtype.kind in "biu":
        return 0.0 if np.array_equal(found, exact) else math.nan
    exact = exact.astype("float64")
    return float(abs(found.astype("float64") - exact).max() / max(abs(exact).max(), 1e-30))


def measured(row, dtype):
    """(error, seconds of Kiln's kernel, seconds of numpy's call) in one type."""
    values = [each.array(dtype) for each in row.inputs]
    of_type = {"dtype": dtype} if row.of_type else {}
    tensors = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(values)]
    kernel = kiln.build([*tensors, row.operator(*tensors, **of_type)], name="f")
    arrays = [kiln.nd.array(x) for x in values]
    error = error_of(kernel(*arrays).numpy(), exact_of(row, values, of_type))
    measure = kernel.time_evaluator("f", kiln.cpu(0), number=1)
    with np.errstate(all="ignore"):
        turns = []
        for _ in range(TURNS):
            time.sleep(REST)
            turns.append((measure(*arrays).min, math.nan if row.loop else seconds(lambda: row.reference(*values, **of_type))))
    return error, *(min(side) for side in zip(*turns))


def micro(value):
    return "" if math.isnan(value) else f"{value * 1e6:.3g}" if value < 1e-4 else f"{value * 1e6:.0f}"


def ratio(ours, theirs):
    if math.isnan(theirs):
        return ""
    text = f"{theirs / ours:.2g}" if theirs < ours else f"{theirs / ours:.1f}"
    return f"**{text}**" if theirs < 0.95 * ours else text


def line_of(row):
    """The row as a line of the table, and its ratios by type."""
    cells, ratios = [], {}
    for dtype in row.types:
        error, ours, theirs = measured(row, dtype)
        cells += [dtype, f"{error:.0e}" if error else "0", micro(ours), micro(theirs), ratio(ours, theirs)]
        if not row.loop:
            ratios[dtype] = theirs / ours
        if math.isnan(error) or error > (1e-4 if dtype == "float32" else 1e-9):
            print(f"{row.name} in {dtype} differs from numpy: {error}", file=sys.stderr)
    cells += [""] * (10 - len(cells))
    shown = ", ".join("x".join(map(str, each.array(row.types[0]).shape)) or "()" for each in row.inputs)
    return f"| `{row.name}` | {shown} | {' | '.join(cells)} |", ratios


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--page", action="store_true", help="with what stands above the table in the documentation")
    parser.add_argument("--machine", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--nice", type=int, default=0, help="added to the priority of this process and its daemon")
    args = parser.parse_args()
    if args.nice:
        os.nice(args.nice)
    if args.page:
        print(HEAD.format(numpy=np.__version__, threads=os.cpu_count(), machine=args.machine))
    print("| operator | shapes | type | error | Kiln us | numpy us | times faster | type | error | Kiln us | numpy us | times faster |")
    print("|" + "---|" * 12)
    all_ratios = {}
    for row in ROWS:
        if args.words and not any(word in row.name for word in args.words):
            continue
        line, ratios = line_of(row)
        print(line, flush=True)
        for dtype, each in ratios.items():
            all_ratios.setdefault(dtype, []).append(each)
    means = ", ".join(f"{mean(each):.1f} in {dtype} ({len(each)} operators)" for dtype, each in all_ratios.items())
    print(f"\nHow many times faster in the mean (geometric): {means}.")
    if args.page:
        print(FOOT, end="")


if __name__ == "__main__":
    main()

"""What the models of this folder have in common: they are compiled, checked and timed."""

import argparse
import time

import numpy as np


def arguments(doc, **numbers):
    """The command line: a flag for each number, with its default."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--runs", type=int, default=5, help="how often it is timed")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def weights(shapes, seed=0):
    """Normal numbers by name, of a size that keeps activations where they are."""
    random = np.random.default_rng(seed)
    made = {}
    for name, shape in shapes.items():
        scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        made[name] = (random.standard_normal(shape, "float32") * np.float32(scale)).astype("float32")
    return made


def compiled(program, feeds):
    """Prints what the program is made of and how long that took."""
    begin = time.perf_counter()
    plan = program.plan(feeds)
    print(
        f"{program.name}: {len(plan.kernels)} kernels, {plan.moved / 1e6:.1f} MB moved, arena {plan.arena / 1e6:.1f} MB "
        f"({plan.separate / 1e6:.1f} without reuse), compiled in {time.perf_counter() - begin:.2f} s"
    )


def timed(program, feeds, runs, what):
    """The outputs of a run, whose fastest time is printed."""
    results = [program.run(feeds) for _ in range(max(runs, 1))]
    print(f"{what}: {min(result.timings['kernel'] for result in results) * 1e3:.2f} ms")
    return results[-1]


def checked(got, wanted, tolerance):
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert error < tolerance, f"off by {error:.1e} of the largest element"
    print(f"as the reference, to {error:.1e} of the largest element")

"""What issuing many steps as one call costs beside the kernels, what first epochs and compiles cost, what fusing an
attention saves. Prints figures and judges nothing; whole models and other libraries are in models.py.

    python tests/bench/programs.py                    everything, about a minute
    python tests/bench/programs.py --only attention --turns 40

KILN_DAEMON says which kilnd is measured. Each run of it starts one of its own, whose cache is empty.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
PARTS = ("steps", "epochs", "attention", "compiles")


def least(turns, *actions):
    """The shortest time of each action, in seconds; they take turns."""
    best = [float("inf")] * len(actions)
    for _ in range(turns):
        for i, action in enumerate(actions):
            begin = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def steps(turns):
    """A hundred steps of linear regression in one call, and the time of their kernels one by one."""
    import kiln
    import numpy as np
    from kiln import topi

    random = np.random.default_rng(0)
    x, y = random.standard_normal((1000, 100), "float32"), random.standard_normal((1000, 1), "float32")
    program = kiln.Program("regression")
    px, py = program.input(x.shape, name="x"), program.input(y.shape, name="y")
    w = program.parameter(np.zeros((100, 1), "float32"), "w")
    error = topi.matmul(px, w) - py
    loss = topi.sum(error * error)
    program.minimize(loss, kiln.optimizers.SGD(1e-6))
    feeds = {"x": kiln.nd.array(x), "y": kiln.nd.array(y)}
    program.run(feeds, steps=1)
    inside = []

    def run():
        inside.append(program.run(feeds, steps=100).timings["kernel"])

    (call,) = least(turns, run)
    empty = least(turns, lambda: program.run(feeds, steps=1))[0]
    print(f"100 steps of linear regression: call {call * 1e6:.0f} us, from the first kernel to the last {min(inside) * 1e6:.0f} us "
          f"({call / min(inside):.2f}); one step alone {empty * 1e6:.0f} us; {len(program.plan(feeds).kernels)} kernels a step")  # fmt: skip


def epochs(turns):
    """The first epoch of a new daemon, and later ones."""
    import mnist
    from model_peers import data

    import kiln

    images, labels = data.mnist()
    given = {"x": kiln.nd.array(images), "labels": kiln.nd.array(labels)}
    for model in ("logreg", "mlp"):
        training = mnist.Training(model)
        times = []
        for _ in range(max(turns // 4, 3)):
            times.extend(least(1, lambda training=training: training.epoch(given)))
        print(f"{model}: first epoch {times[0] * 1e3:.0f} ms, the fastest of {len(times) - 1} later ones {min(times[1:]) * 1e3:.1f} ms")


def attention(turns):
    """One kernel, and two that hand each other the scores in memory, all on arrays that are there."""
    import kiln
    import numpy as np
    from kiln import te, topi

    for heads, places, width in ((12, 512, 64), (12, 2048, 64)):
        random = np.random.default_rng(0)
        shape, square = (heads, places, width), (heads, places, places)
        q, k, v = (te.placeholder(shape, name=name) for name in "qkv")
        scores = topi.matmul(q, topi.transpose(k, (0, 2, 1))) * np.float32(width**-0.5)
        masked = te.compute(square, lambda h, i, j, s=scores: te.select(j <= i, s[h, i, j], te.min_value("float32")), name="masked")
        looks, given = topi.nn.softmax(masked), te.placeholder(square, name="looks")
        whole = kiln.build([q, k, v, topi.matmul(looks, v)], name="whole")
        first = kiln.build([q, k, looks], name="first")
        second = kiln.build([given, v, topi.matmul(given, v)], name="second")
        arrays = [kiln.nd.array(random.standard_normal(shape, "float32")) for _ in range(3)]
        result, between = kiln.nd.empty(shape, "float32"), kiln.nd.empty(square, "float32")

        def apart(arrays=arrays, result=result, between=between, first=first, second=second):
            first(*arrays[:2], between)
            second(between, arrays[2], result)

        fused, two = least(turns, lambda whole=whole, arrays=arrays, result=result: whole(*arrays, result), apart)
        print(f"attention {heads} x {places} x {width}: one kernel {fused * 1e3:.2f} ms, two {two * 1e3:.2f} ms")


def compiles(turns):
    """Plans of the whole models by an empty cache, and by another daemon with what that left on disk."""
    del turns
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as cache:
        for what in ("cold", "cached"):
            run_apart("models", {"XDG_CACHE_HOME": cache, "KILN_BENCH_WHAT": what})


def models(turns):
    del turns
    import gpt2
    import lstm
    import measure
    import numpy as np
    import resnet

    import kiln

    what = os.environ["KILN_BENCH_WHAT"]
    program, x = resnet.model(1, resnet.random_weights(), 224)
    report(what, "ResNet-18", program, {x: np.zeros((1, 3, 224, 224), "float32")})
    weights = measure.weights({f"l{i}.{kind}": (512, 2048) for i in range(2) for kind in "xh"})
    program = kiln.Program("lstm")
    x = program.input((100, 1, 512), name="x")
    program.output(y=lstm.layer(program, lstm.layer(program, x, weights, "l0"), weights, "l1"))
    report(what, "LSTM", program, {x: np.zeros((100, 1, 512), "float32")})
    arrays = {
        name: kiln.nd.array(np.zeros(shape, "float32")) for name, shape in gpt2.shapes_of(12, 768, 50257, 1024).items()
    }
    caches = {f"h{i}.{part}": kiln.nd.array(np.zeros((1024, 768), "float32")) for i in range(12) for part in ("keys", "values")}
    report(what, "GPT-2 small, 512 tokens", gpt2.prompt_program(arrays, 12, 512, caches), {"tokens": np.zeros(512, "int32")})


def report(what, name, program, feeds):
    begin = time.perf_counter()
    plan = program.plan(feeds)
    seconds = time.perf_counter() - begin
    print(f"{name}, {what}: compiled in {plan.compile_seconds * 1e3:.0f} ms, planned in {seconds * 1e3:.0f} ms; {len(plan.kernels)} kernels, "
          f"{plan.moved / 1e6:.1f} MB moved, arena {plan.arena / max(plan.live, 1):.2f} of the lifetime bound", flush=True)  # fmt: skip


def run_apart(part, environment=None):
    """In a process with a daemon of its own."""
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        own = {"XDG_RUNTIME_DIR": folder, "XDG_CACHE_HOME": folder, **(environment or {})}
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--inside", part], env={**os.environ, **own}, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "models"), str(HERE)]
        return globals()[options.inside](options.turns)
    for part in options.only or PARTS:
        run_apart(part)


if __name__ == "__main__":
    main()

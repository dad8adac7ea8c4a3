"""What a GPU computes, against numpy; and what is said of programs that it cannot run."""

import time

import kernels
import numpy as np
import topi_cases
import topi_nn_cases
from host import CompilesOnly

import kiln
from kiln import te


def cases(word=""):
    return [c for c in topi_cases.CASES + topi_nn_cases.CASES if word in c.name]


def compared(result, expected, rtol, atol):
    """The largest difference, or why they differ."""
    expected = np.asarray(expected)
    if result.shape != expected.shape:
        raise AssertionError(f"shape {result.shape}, not {expected.shape}")
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return 0.0
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)
    both = np.isfinite(expected)
    return float(np.abs(result[both].astype("float64") - expected[both].astype("float64")).max(initial=0.0))


def check(connection, args, arrays, expected, rtol, atol, **options):
    """A kernel run twice on the GPU and once on the CPU: its numbers, and how far they are from numpy's."""
    kernel = connection.build(args, target="cuda", **options)
    results = [kernel(*arrays).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*results)
    error = compared(results[0], expected(), rtol, atol)
    on_cpu = connection.build(args, target="llvm", **options)(*arrays).numpy()
    return {
        "error": error,
        "from_cpu": compared(results[0], on_cpu, rtol, atol),
        "bits_of_cpu": bool(np.array_equal(results[0], on_cpu, equal_nan=results[0].dtype.kind == "f")),
        "launches": kernel.report().get("launches"),
    }


def run_case(connection, case):
    """One operator."""
    inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
    args = [*inputs, case.build(*inputs)]
    return check(connection, args, case.inputs, lambda: case.expected(*case.inputs), case.rtol, case.atol)


def outcome(work):
    """What `work` gives, or the sentence of why not. A kernel that is refused is not a wrong one."""
    begin = time.perf_counter()
    try:
        row = {"state": "right", **work()}
    except CompilesOnly:
        row = {"state": "compiled"}
    except kiln.Unsupported as error:
        row = {"state": "refused", "sentence": error.message}
    except AssertionError as error:
        row = {"state": "wrong", "sentence": str(error).strip().splitlines()[0]}
    except kiln.Error as error:
        row = {"state": "failed", "sentence": error.message}
    row["seconds"] = round(time.perf_counter() - begin, 3)
    return row


def operators(connection, until, word):
    """Every use of an operator, as far as the time allows."""
    rows = {}
    for case in cases(word):
        if time.monotonic() > until:
            rows[case.name] = {"state": "no time"}
            continue
        rows[case.name] = outcome(lambda case=case: run_case(connection, case))
    return rows


def whole_programs(connection):
    """Scans, contractions and norms at sizes that leave tails."""
    random = np.random.RandomState(0)

    def of(args, arrays, expected):
        return outcome(lambda: check(connection, args, arrays, lambda: expected, 1e-4, 1e-4))

    rows = {}
    for m, n in [(10, 1024), (10, 1000), (1, 1), (7, 33)]:
        x = random.rand(m, n).astype("float32")
        rows[f"cumsum {m} x {n}"] = of(kernels.cumsum(), [x], np.cumsum(x, axis=0))
    for m, k, n in [(16, 16, 16), (33, 17, 65), (64, 128, 32)]:
        a, b = random.rand(m, k).astype("float32"), random.rand(k, n).astype("float32")
        rows[f"matmul {m} x {k} x {n}"] = of(kernels.matmul(m, k, n), [a, b], a @ b)
    x = random.rand(9, 100).astype("float32")
    e = np.exp(x - x.max(axis=1, keepdims=True))
    rows["softmax 9 x 100"] = of(kernels.softmax(9, 100), [x], e / e.sum(axis=1, keepdims=True))
    return rows


def resident(connection, count=2):
    """A chain of calls on arrays of each device, nothing of which is seen here before its end."""
    names = [d["name"] for d in connection.describe()["devices"] if d["name"].startswith("cuda")]

    def chain(number):
        kernel = connection.build(kernels.add_one(1000), target="cuda")
        device = kiln.cuda(number)
        x = kiln.nd.array(np.arange(1000, dtype="float32"), device)
        y = kiln.nd.array(np.zeros(1000, "float32"), device)
        for _ in range(10):
            kernel(x, y)
            kernel(y, x)
        return {"error": compared(x.numpy(), np.arange(1000, dtype="float32") + 20, 0, 0)}

    def travel():
        kernel = connection.build(kernels.add_one(1000), target="cuda")
        x = kiln.nd.array(np.arange(1000, dtype="float32"), kiln.cuda(0))
        for number in range(len(names)):
            x = kernel(x.copyto(kiln.cuda(number)))
            if x.device != kiln.cuda(number):
                raise AssertionError(f"a result of cuda:{number} lies on {x.device}")
        return {"error": compared(x.numpy(), np.arange(1000, dtype="float32") + len(names), 0, 0)}

    rows = {name: outcome(lambda i=i: chain(i)) for i, name in enumerate(names[:count])}
    rows["from one to the next"] = outcome(travel)
    return rows


def trouble(connection):
    """Programs that must be refused: each with its sentence, and the device as good as before."""

    def out_of_range():
        x, i = te.placeholder((8,), name="X"), te.placeholder((4,), "int64", name="I")
        kernel = connection.build([x, i, te.compute((4,), lambda j: x[i[j]], name="Y")], target="cuda")
        kernel(np.zeros(8, "float32"), np.array([0, 1, 99, 2]))

    def too_many_threads():
        n = te.var("n")
        x = te.placeholder((n,), name="X")
        y = te.compute((n,), lambda i: x[i] + 1, name="Y")
        s = te.create_schedule(y.op)
        s[y].bind(y.op.axis[0], te.thread_axis("threadIdx.x"))
        connection.build(s, [x, y], target="cuda")(np.zeros(1025, "float32"))

    rows = {}
    for work in (out_of_range, too_many_threads):
        try:
            work()
            rows[work.__name__] = {"state": "wrong", "sentence": "it was not refused"}
        except CompilesOnly:
            rows[work.__name__] = {"state": "compiled"}
        except kiln.Error as error:
            rows[work.__name__] = {"state": "right", "sentence": error.message}
    rows["afterwards"] = next(iter(resident(connection, 1).values()))
    return rows

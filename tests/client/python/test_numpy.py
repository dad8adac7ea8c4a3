"""Every operator of the table, in every type it takes, against numpy, with all pairs of special values."""

import fractions
import functools
import math
import warnings

import ml_dtypes
import numpy as np
import pytest

import kiln as tvm
from kiln import te
from kiln._tables import DTYPES, OPERATORS

KINDS = {name: kind for name, _, kind, _ in DTYPES}
BITS = {name: bits for name, _, _, bits in DTYPES}
FLOATS = [name for name in KINDS if name.startswith(("float", "bfloat"))]
ACCURACY = {row[0]: row for row in OPERATORS}
UNSIGNED = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
BLOCK = 16


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def takes(operator, rule, name):
    """Whether the type rule admits operands (the last two, of a choice) of a type."""
    is_float, is_int = name in FLOATS, name.startswith(("int", "uint"))
    return {
        "same": is_float or is_int,
        "same_int": is_int,
        "same_float": is_float,
        "same_bits": is_int or name == "bool",
        "compare": True,
        "logic": name == "bool",
        "choose": True,
        "float_test": is_float,
        "int_to_int": is_int,
        "bits": is_float,
        "from_bits": name == UNSIGNED[BITS[operator.removesuffix("_of_bits")]]
        if rule == "from_bits" else False,
    }[rule]


def special_values(name):
    dtype = numpy_dtype(name)
    if name == "bool":
        return np.array([False, True])
    if name not in FLOATS:
        info = np.iinfo(dtype)
        values = [0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 127, info.max, info.max - 1, info.min,
                  info.min + 1, info.max // 2, info.max // 3]
        values += [-1, -2, -3, -7, -8, -100] if info.min < 0 else []
        return np.array([v for v in dict.fromkeys(values) if info.min <= v <= info.max], dtype)
    info = ml_dtypes.finfo(dtype)
    tiny, least, largest = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 7.25, 10.0, 1 / 3, 0.1, 100.0, tiny, least,
              largest, 3 * least, largest / 2, math.inf]
    values += [-v for v in values] + [math.nan]
    if BITS[name] > 16:
        values += [20.5, -88.0, 88.0, 1e-3, 4194304.5, 8388609.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(values, np.float64).astype(dtype)


def operands(name):
    """All pairs of special values, a third that runs along, and conditions; whole blocks of each."""
    values = special_values(name)
    a, b = (x.ravel() for x in np.meshgrid(values, values, indexing="ij"))
    pad = -len(a) % BLOCK
    a, b = np.concatenate([a, a[:pad]]), np.concatenate([b, b[:pad]])
    c = values[np.arange(len(a)) * 7 % len(values)]
    return a, b, c, np.arange(len(a)) % 3 == 0


# References. One that is not of the operands' own type is as precise as float64 (or better) and says
# so by its type; it is compared within the accuracy that the table states.


def in_float64(function):
    return lambda *args: function(*(x.astype(np.float64) for x in args))


def in_longdouble(function):
    return lambda *args: function(*(x.astype(np.longdouble) for x in args))


def elementwise(function):
    def apply(*args):
        rows = zip(*(x.astype(np.float64) for x in args))
        return np.array([function(*map(float, row)) for row in rows])
    return apply


def exact_fma(a, b, c):
    """a * b + c in rational numbers, rounded to odd in float64 so that one more rounding is right."""
    if not all(map(math.isfinite, (a, b, c))):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    if exact == 0:
        return math.copysign(0.0, a) * b + c if a == 0 or b == 0 else 0.0 + 0.0
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if fractions.Fraction(near) == exact or math.isinf(near):
        return near
    below = near if abs(fractions.Fraction(near)) < abs(exact) else math.nextafter(near, 0.0)
    bits = np.float64(below).view(np.uint64) | np.uint64(1)
    return float(bits.view(np.float64))


def fma(a, b, c):
    if a.dtype == np.float64:  # rounded once, by Fraction itself
        def one(x, y, z):
            if math.isfinite(x) and math.isfinite(y) and not math.isfinite(z):
                return z  # the product is finite before it is rounded
            if not all(map(math.isfinite, (x, y, z))) or (x * y == 0 and z == 0):
                return x * y + z
            exact = fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z)
            try:
                return float(exact)
            except OverflowError:
                return math.inf if exact > 0 else -math.inf
        return elementwise(one)(a, b, c)
    return elementwise(exact_fma)(a, b, c).astype(a.dtype)


def truncated_quotient(a, b):
    """numpy has no integer division that rounds to zero, but the remainder that goes with it."""
    return np.floor_divide(a - np.fmod(a, b), b)


def power(a, b):
    if a.dtype.kind not in "iu":
        return in_float64(np.power)(a, b)
    bits = 8 * a.dtype.itemsize
    raw = [pow(int(x), int(y), 1 << bits) if y >= 0 else (int(x) ** int(abs(y) % 2) if abs(int(x)) == 1 else 0)
           for x, y in zip(a, b)]
    raw = [v % (1 << bits) for v in raw]
    return np.array(raw, UNSIGNED[bits]).view(a.dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def ldexp(a, b):
    exponent = np.clip(np.nan_to_num(np.trunc(b.astype(np.float64)), nan=0.0), -5000, 5000)
    wide = np.ldexp(a.astype(np.longdouble), exponent.astype(np.int32))
    return wide if a.dtype == np.float64 else wide.astype(np.float64)


def clz(a):
    width = 8 * a.dtype.itemsize
    return np.array([width - int(x).bit_length() for x in a.view(UNSIGNED[width])], a.dtype)


def tf32(a):
    if a.dtype != np.float32:
        return a
    return np.where(np.isnan(a), a, (a.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32))


def popcount(a):
    return np.bitwise_count(a.view(UNSIGNED[8 * a.dtype.itemsize])).astype(a.dtype)


def bits_of(a):
    return a.view(UNSIGNED[8 * a.dtype.itemsize])


REFERENCE = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floordiv": np.floor_divide, "floormod": np.remainder,
    "truncdiv": truncated_quotient, "truncmod": np.fmod,
    "min": np.minimum, "max": np.maximum, "negative": np.negative, "abs": np.abs,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.bitwise_not, "shift_left": np.left_shift, "shift_right": np.right_shift,
    "select": np.where, "if_then_else": np.where,
    "exp10": in_longdouble(lambda x: np.power(np.longdouble(10), x)),
    "rsqrt": in_longdouble(lambda x: 1 / np.sqrt(x)),
    "asin": in_longdouble(np.arcsin), "acos": in_longdouble(np.arccos),
    "atan": in_longdouble(np.arctan), "atan2": in_longdouble(np.arctan2),
    "asinh": in_longdouble(np.arcsinh), "acosh": in_longdouble(np.arccosh),
    "atanh": in_longdouble(np.arctanh),
    "erf": elementwise(math.erf), "sigmoid": in_longdouble(sigmoid), "pow": power,
    "fma": fma, "round": np.rint, "ldexp": ldexp,
    "bits_of": bits_of, "popcount": popcount, "tf32": tf32, "clz": clz,
    **{f"{name}_of_bits": functools.partial(lambda name, x: x.view(numpy_dtype(name)), name)
       for name in FLOATS},
}



def reference(operator):
    """What the operator gives: numpy's function of the same name, unless it is written above."""
    if operator in REFERENCE:
        return REFERENCE[operator]
    function = getattr(np, operator)
    return in_longdouble(function) if accuracy_of(operator) else function


# What is not bit for bit: numpy works in float32 and rounds, as we do, but fma rounds once there.
STEPS = {(operator, name): 1 for operator in ("fma",) for name in FLOATS if BITS[name] < 32}


def cases():
    for operator, arity, rule, _, _ in OPERATORS:
        for name in KINDS:
            if takes(operator, rule, name):
                yield operator, name


def sources(operator, rule, arity, tensors):
    a, b, c, condition = tensors
    return [condition, a, b] if rule == "choose" else [a, b, c][:arity]


@pytest.fixture(scope="module")
def computed(kilnd):
    """A function that gives what Kiln computes: one kernel a type, with an output for each operator."""
    results = {}

    def compute(wanted, name):
        if name not in results:
            with tvm.connect(kilnd):
                results[name] = compute_all(name)
        return results[name][wanted]

    return compute


def compute_all(name):
    n = te.var("n")
    tensors = [te.placeholder((n,), dtype, name=label) for label, dtype in
               (("a", name), ("b", name), ("c", name), ("condition", "bool"))]
    outputs = []
    for operator in (operator for operator, of in cases() if of == name):
        _, arity, rule, _, _ = ACCURACY[operator]
        used = sources(operator, rule, arity, tensors)
        outputs.append(te.compute((n,), lambda i: getattr(te, operator)(*(t[i] for t in used)),
                                  name=operator))
    f = tvm.build([*tensors, *outputs], target="llvm", name=f"operators_of_{name}")
    return {out.op.name: result.numpy() for out, result in zip(outputs, f(*operands(name)))}


def distance(actual, expected, name):
    """How many steps of the type lie between two arrays; nan is 0 steps from nan."""
    info = ml_dtypes.finfo(numpy_dtype(name))
    wide = np.longdouble
    a, b = actual.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        # Past the largest number by less than half a step is that number still; a step is finite.
        limit = wide(float(info.max))
        rounded = expected.astype(np.float64).astype(numpy_dtype(name)).astype(wide)
        b = np.where(np.isfinite(rounded), b, rounded)
        magnitude = np.minimum(np.maximum(np.abs(a), np.abs(b)), limit)
        exponent = np.floor(np.log2(np.maximum(magnitude, wide(float(info.tiny)))))
        step = np.exp2(exponent - info.nmant)
        steps = np.abs(a - b) / step
        at_edge = np.isinf(a) != np.isinf(b)
        edge = np.where(np.isinf(a), b, a)
        steps = np.where(at_edge & (np.abs(edge) >= limit * wide(0.99)), 1, steps)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0, steps)


@pytest.mark.parametrize("operator, name", list(cases()))
def test_operator(computed, operator, name):
    _, arity, rule, _, _ = ACCURACY[operator]
    given = sources(operator, rule, arity, operands(name))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = np.asarray(reference(operator)(*given))
        actual = computed(operator, name)
        result = name if rule not in ("from_bits",) else operator.removesuffix("_of_bits")
        if actual.dtype not in map(numpy_dtype, FLOATS):
            wrong = actual != expected
        else:
            accuracy = accuracy_of(operator)
            exact = expected.dtype == actual.dtype
            allowed = accuracy + (0 if exact else 0.51)
            if BITS[result] < 32 and accuracy:
                allowed = 1.01  # rounded to float32 before
            allowed = max(allowed, STEPS.get((operator, name), 0))
            wrong = ~(distance(actual, expected, result) <= allowed)
            if exact and not accuracy and operator not in ("min", "max", "nextafter", "fma"):
                both_zero = (actual == 0) & (expected == 0)
                wrong |= both_zero & (np.signbit(actual.astype("f8")) != np.signbit(expected.astype("f8")))
    if wrong.any():
        rows = [f"{operator}({', '.join(str(x[i]) for x in given)}) is {actual[i]}, numpy has {expected[i]}"
                for i in np.flatnonzero(wrong)[:10]]
        pytest.fail(f"{name}: {int(wrong.sum())} of {len(wrong)}\n" + "\n".join(rows))


@functools.cache
def accuracy_of(operator):
    """Steps from the exact result, as docs/language.md has them."""
    from tree import ROOT

    for line in (ROOT / "docs/language.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "/").split("|")]
        if len(cells) > 6 and cells[1] == f"`{operator}`":
            return 0 if cells[5] == "exact" else float(cells[5].split()[0])
    raise AssertionError(f"docs/language.md has no row for {operator}")


def saturated(values, name):
    """What a cast of floating numbers to an integer type gives: rounded to zero, the nearest end, 0 of nan."""
    info = np.iinfo(name)
    return np.array([0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min
                     else int(v) for v in values.astype(np.float64)], name)


@pytest.mark.parametrize("name", KINDS)
def test_casts(kilnd, name):
    values = special_values(name)
    with tvm.connect(kilnd), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        n = te.var("n")
        a = te.placeholder((n,), name, name="a")
        outs = [te.compute((n,), lambda i, to=to: a[i].astype(to), name=f"to_{to}") for to in KINDS]
        results = tvm.build([a, *outs], target="llvm", name="casts")(values)
        for to, result in zip(KINDS, results):
            if name in FLOATS and to not in FLOATS and to != "bool":
                expected = saturated(values, to)
            elif to == "bool":
                expected = values != 0
            else:
                expected = values.astype(numpy_dtype(to))
            actual = result.numpy()
            same = actual == expected
            if to in FLOATS:
                same |= np.isnan(actual) & np.isnan(expected)
            assert same.all(), (to, values[~same], actual[~same], expected[~same])


def computed_by(connection_to, dtype, values, body):
    with tvm.connect(connection_to):
        a = te.placeholder((te.var("n"),), dtype, name="a")
        b = te.compute(a.shape, lambda i: body(a[i]), name="b")
        return tvm.build([a, b], target="llvm", name="function")(values).numpy()


@pytest.mark.parametrize("source, target", [
    ("float32", "int32"), ("int32", "float32"), ("uint16", "bfloat16"), ("bfloat16", "float16"),
    ("int8", "float8_e4m3fn"), ("float8_e5m2", "uint8"), ("float64", "uint64"), ("uint32", "int32")])
def test_reinterpret_keeps_the_bits(kilnd, source, target):
    values = special_values(source)
    result = computed_by(kilnd, source, values, lambda x: te.reinterpret(target, x))
    assert result.tobytes() == values.view(numpy_dtype(target)).tobytes()


@pytest.mark.parametrize("name", FLOATS)
def test_ldexp_of_whole_numbers(kilnd, name):
    values = special_values(name)
    for exponent in (-17, -1, 0, 5, 17):
        result = computed_by(kilnd, name, values, lambda x: te.ldexp(x, exponent))
        with np.errstate(all="ignore"):
            expected = np.ldexp(values.astype("longdouble"), exponent).astype("f8").astype(values.dtype)
        np.testing.assert_array_equal(result.astype("f8"), expected.astype("f8"))


@pytest.mark.parametrize("q, s", [(31, 0), (31, 3), (31, -4), (15, 1), (0, 0)])
def test_q_multiply_shift(kilnd, q, s):
    values = np.array([0, 1, -1, 5, 1 << 20, -(1 << 24), 123456789, -987654321], "int32")
    y = 1 << 30 if q == 31 else 3 << max(q - 2, 0)
    result = computed_by(kilnd, "int32", values, lambda x: te.q_multiply_shift(x, y, q, s))
    shift = q - s
    wide = values.astype(object) * y
    expected = [(v << -shift) if shift <= 0 else (v + (1 << (shift - 1))) >> shift for v in wide]
    same_shift = q - min(s, 0)
    if s > 0:  # shifted left first, then rounded once
        expected = [((v << s) + (1 << (same_shift - 1))) >> same_shift for v in wide]
    np.testing.assert_array_equal(result, np.array([int(v) for v in expected]).astype("int32"))


def test_constants_of_types(kilnd):
    for name in KINDS:
        if name == "bool":
            continue
        info = ml_dtypes.finfo(numpy_dtype(name)) if name in FLOATS else np.iinfo(name)
        values = np.zeros(1, numpy_dtype(name))
        for function, end in ((te.min_value, info.min), (te.max_value, info.max)):
            result = computed_by(kilnd, name, values, lambda x: te.max(x, x) * te.const(0, name) + function(name))
            assert result[0] == numpy_dtype(name).type(end)
    assert np.isinf(computed_by(kilnd, "float32", np.zeros(1, "f4"), lambda x: x + te.infinity())[0])
    assert computed_by(kilnd, "int32", np.array([1, 2], "i4"), lambda x: te.if_then_else(te.likely(x > 1), x, -x)).tolist() == [-1, 2]

"""topi.random: numbers of Threefry, a hash of a key and a counter, so that a kernel's numbers follow from its state alone.

A state is 10 words of uint64: four of the key, two of the path of splits, two of the counter, two that say where the path
goes on. Each operator gives the next state first. The numbers are those of TVM v0.10; the hash is Threefry-4x64 with 20
rounds of J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), the states are those of
K. Claessen and M. Palka, "Splittable pseudorandom number generators using cryptographic hashing" (2013).
"""

import math

from .._base import dtypes
from .._base.error import invalid, public
from .._base.suggest import answers as _answers
from .._definitions import define
from .._expressions.arithmetic import apply, cast, constant
from .._expressions.text import shape_text
from . import _elementwise as elementwise
from ._common import constant_int, tensor
from ._make import full_like
from ._places import reinterpret
from ._reduction import argmin, cumsum, sum
from ._shape import expand_dims

__all__ = []

_WORD = "uint64"
_ONES = (1 << 64) - 1
_PARITY = 0x1BD11BDAA9FC1A22  # what the key's fifth word is made with
# Bits by which the second word of a pair is rotated: a row for each of eight rounds.
_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_ROUNDS = 20
_LATEST = 1 << 62  # of the second bit from the left


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _word(value):
    return constant(value, _WORD)


def _chosen(i, values):
    """values[i], as a chain of choices."""
    result = values[-1]
    for place in reversed(range(len(values) - 1)):
        result = apply("select", i == place, values[place], result)
    return result


def _state(gen, where):
    gen = tensor(gen, where)
    if gen.dtype != _WORD or gen.ndim != 1 or gen.shape[0] != 10:
        raise invalid(
            "RANDOM_STATE",
            f"{where} takes a state of 10 words of uint64, but {gen.name} is {gen.dtype} of shape {shape_text(gen.shape)}; "
            "the first state of a seed is [0, 0, 0, seed, 0, 0, 0, 0, 1 << 63, 0]",
        )
    return gen


def _hashed(key, counters, name):
    """The hash under a key (a function of 0..3) of counters: four words of each, as tensors over the counters."""
    keys = [key(i) for i in range(4)]
    fifth = _word(_PARITY)
    for each in keys:
        fifth = apply("bitwise_xor", fifth, each)
    keys.append(fifth)
    schedule = define.compute((5,), lambda i: _chosen(i, keys), name=f"{name}_key")
    words = counters
    for group in range(_ROUNDS // 4):
        words = _four_rounds(words, schedule, group, name)
    return words


def _four_rounds(words, schedule, group, name):
    """The next part of the key is added, then four rounds; a stage of its own, so that nothing is computed twice."""

    def body(n):
        now = [word[n] + schedule[(group + j) % 5] for j, word in enumerate(words)]
        now[3] = now[3] + _word(group)
        for r in range(4):
            mixed = []
            for pair, bits in enumerate(_ROTATIONS[(group * 4 + r) % 8]):
                a, b = now[2 * pair], now[2 * pair + 1]
                both = a + b
                turned = apply("bitwise_or", apply("shift_left", b, bits), apply("shift_right", b, 64 - bits))
                mixed += [both, apply("bitwise_xor", both, turned)]
            now = [mixed[0], mixed[3], mixed[2], mixed[1]]
        return tuple(now)

    return define.compute(words[0].shape, body, name=f"{name}_rounds{group}")


def _path_position_moved(gen):
    """The two words of the path's position, a bit further to the right."""
    high, low = gen[8], gen[9]
    half = apply("shift_right", high, 1)
    first = apply("select", high == 1, _word(0), half)
    second = apply(
        "select", high == 1, _word(1 << 63), apply("select", high == 0, apply("shift_right", low, 1), _word(0))
    )
    return first, second


def _path_is_full(gen):
    return apply("logical_and", gen[8] == 0, gen[9] == 0)


def _new_key(gen, counter, name):
    """Four words that take the place of key, path and counter."""
    counters = define.compute((1,), lambda n: tuple(counter(j) for j in range(4)), name=f"{name}_counter")
    return _hashed(lambda i: gen[i], counters, name)


def _with_room(gen, count):
    """The state to draw `count` numbers of: where the counter has no room for them, a longer path, or a new key."""
    key = _new_key(gen, lambda j: _word(_ONES), "T_threefry_rekeyed")
    moved = _path_position_moved(gen)
    has_room = gen[7] < _word(_ONES - count)
    full = _path_is_full(gen)
    fresh = [key[j][0] for j in range(4)] + [_word(0)] * 4 + [_word(1 << 63), _word(0)]
    longer = [gen[j] for j in range(4)]
    longer += [apply("bitwise_or", gen[4], gen[8]), apply("bitwise_or", gen[5], gen[9]), _word(0), _word(0), *moved]

    def body(i):
        changed = apply("select", full, _chosen(i, fresh), _chosen(i, longer))
        return apply("select", has_room, gen[i], changed)

    return define.compute((10,), body, name="T_threefry_state")


@_export
def threefry_generate(gen, out_shape):
    """The next state and a tensor of words of 64 random bits; `out_shape` is constant."""
    where = "topi.random.threefry_generate"
    gen = _state(gen, where)
    shape = [constant_int(size, f"{where}: each size") for size in define.as_shape(out_shape, where)]
    count = math.prod(shape)
    state = _with_room(gen, count)
    whole, rest = divmod(count, 4)

    def counters(n):
        def word(j):
            last = state[4 + j] + (_word(4 * whole) if j == 3 else _word(0))
            return last if whole == 0 else apply("select", n < whole, state[4 + j] + cast(_WORD, n), last)

        return tuple(word(j) for j in range(4))

    blocks = define.compute((max(1, whole + (rest > 0)),), counters, name="T_threefry_counter")
    words = _hashed(lambda i: state[i], blocks, "T_threefry")
    used = 4 * (whole + 1) if rest else count

    def following(i):
        return _chosen(i, [*(state[j] for j in range(6)), _word(0), state[7] + _word(used), state[8], state[9]])

    def number(*index):
        place = cast("int64", 0)
        for i, size in zip(index, shape):
            place = place * size + i
        return _chosen(place % 4, [word[place // 4] for word in words])

    return [define.compute((10,), following, name="T_threefry_next"), define.compute(shape, number, name="T_threefry_bits")]


@_export
def threefry_split(gen):
    """Two states whose numbers have nothing to do with each other."""
    gen = _state(gen, "topi.random.threefry_split")
    key = _new_key(gen, lambda j: gen[4 + j], "T_threefry_split")
    moved = _path_position_moved(gen)
    full = _path_is_full(gen)
    fresh = [key[j][0] for j in range(4)]

    def side(path, paths, name):
        new = [*fresh, _word(path), _word(0), _word(0), _word(0), _word(_LATEST), _word(0)]
        old = [*(gen[j] for j in range(4)), *paths, gen[6], gen[7], *moved]
        return define.compute((10,), lambda i: apply("select", full, _chosen(i, new), _chosen(i, old)), name=name)

    longer = [apply("bitwise_or", gen[4], gen[8]), apply("bitwise_or", gen[5], gen[9])]
    return [side(0, [gen[4], gen[5]], "T_threefry_left"), side(1 << 63, longer, "T_threefry_right")]


@_export
def threefry_test_wrapping(target, device):
    """Whether unsigned sums wrap around, as the hash needs: they do."""
    return True


@_export
def uniform(gen, low, high, out_shape, out_dtype):
    """The next state, and numbers from `low` to below `high`, in float32 or float64."""
    where = "topi.random.uniform"
    dtype = dtypes.dtype_name(out_dtype, where)
    if dtype not in ("float32", "float64"):
        raise invalid("RANDOM_TYPE", f"{where} gives float32 or float64, not {dtype}; topi.cast makes others of it")
    bits, fraction, exponent, word = (32, 23, 127, "uint32") if dtype == "float32" else (64, 52, 1023, "uint64")
    following, drawn = threefry_generate(gen, out_shape)

    def between_one_and_two(*index):
        part = apply("shift_right", cast(word, drawn(*index)), bits - fraction)
        return apply("bitwise_or", part, constant(exponent << fraction, word))

    pattern = define.compute(drawn.shape, between_one_and_two, name="T_uniform_bits")
    values = elementwise.subtract(reinterpret(pattern, dtype), constant(1, dtype))
    return [following, elementwise.add(elementwise.multiply(values, elementwise.subtract(high, low)), low)]


@_export
def normal(gen, mean, scale, out_shape, out_dtype):
    """The next state, and numbers of the normal distribution, by Box and Muller's transform."""
    dtype = dtypes.dtype_name(out_dtype, "topi.random.normal")
    shape = define.as_shape(out_shape, "topi.random.normal")
    following, pairs = uniform(gen, constant(0, dtype), constant(1, dtype), [2, *shape], dtype)

    def value(*index):
        length = apply("sqrt", constant(-2, dtype) * apply("log", constant(1, dtype) - pairs(0, *index)))
        return length * apply("sin", constant(2 * math.pi, dtype) * pairs(1, *index))

    values = define.compute(shape, value, name="T_normal")
    return [following, elementwise.add(elementwise.multiply(values, scale), mean)]


@_export
def multinomial(gen, probs, num_samples):
    """The next state, and for each row of `probs` places in it, each as likely as its share of the row; what is negative
    counts as 0."""
    where = "topi.random.multinomial"
    shares = elementwise.maximum(elementwise.cast(tensor(probs, where), "float32"), 0)
    shares = elementwise.divide(shares, expand_dims(sum(shares, axis=-1), -1))
    bounds = cumsum(shares, axis=-1)
    following, drawn = uniform(gen, 0.0, 1.0, [*bounds.shape[:-1], constant_int(num_samples, f"{where}: num_samples")], "float32")
    distance = elementwise.subtract(expand_dims(bounds, -1), expand_dims(drawn, -2))
    above = elementwise.where(elementwise.greater(distance, 0.0), distance, full_like(distance, 1))
    return [following, argmin(above, axis=-2)]


__all__.sort()
__getattr__ = _answers(__name__, __all__)

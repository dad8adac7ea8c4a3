"""Random numbers by counter: a definition like any other, so the same on every device and in every run.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the counter is
the position of four elements and the number of the step, the key a seed and the number of the tensor.
"""

import math

from .._base.error import invalid
from .._definitions import define
from .._expressions.arithmetic import cast, constant
from .._expressions.operators import cos, log, select, sin, sqrt

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def _word(value):
    return constant(value & 0xFFFFFFFF, "uint32")


def _product(multiplier, word):
    """The high and the low word of a product."""
    wide = constant(multiplier, "uint64") * cast("uint64", word)
    return cast("uint32", wide >> constant(32, "uint64")), _word(multiplier) * word


def philox(counter, key):
    """Four words of four words and a key of two numbers."""
    a, b, c, d = counter
    for turn in range(_ROUNDS):
        high_a, low_a = _product(_MULTIPLIERS[0], a)
        high_c, low_c = _product(_MULTIPLIERS[1], c)
        keys = [_word(k + turn * weyl) for k, weyl in zip(key, _WEYL)]
        a, b, c, d = high_c ^ b ^ keys[0], low_c, high_a ^ d ^ keys[1], low_a
    return a, b, c, d


def size_of(shape, what):
    if not all(isinstance(size, int) for size in shape):
        raise invalid("RANDOM_SHAPE", f"{what} needs a shape of numbers, as its elements are counted")
    return math.prod(shape)


def blocks(count, step, key, name, of_words):
    """`of_words` of the four words of each block of four elements: a tuple of four tensors."""

    def body(i):
        index, turn = cast("uint64", i), cast("uint64", step())
        shift = constant(32, "uint64")
        words = (cast("uint32", index), cast("uint32", index >> shift),
                 cast("uint32", turn), cast("uint32", turn >> shift))  # fmt: skip
        return of_words(philox(words, key))

    return define.compute(((count + 3) // 4,), body, name=f"{name}_blocks")


def spread(tensors, shape, name):
    """Element e of the result is that of tensor e % 4 at e // 4."""

    def element(*indices):
        position = constant(0, "int64")
        for index, size in zip(indices, shape):
            position = position * size + index
        block, place = position // 4, position % 4
        a, b, c, d = (tensor[block] for tensor in tensors)
        return select(place < 2, select(place < 1, a, b), select(place < 3, c, d))

    return define.compute(shape, element, name=name)


def unit(word, floor=0):
    """(word / 2**32) in steps of 2**-24, from `floor` steps on."""
    return (cast("float32", word >> constant(8, "uint32")) + float(floor)) * (2.0**-24)


def uniform(words):
    return tuple(unit(word) for word in words)


def normal(words):
    """Box and Muller, 1958: two numbers of two."""
    made = []
    for first, second in (words[:2], words[2:]):
        radius, angle = sqrt(log(unit(first, 1)) * -2.0), unit(second) * (2 * math.pi)
        made += [radius * cos(angle), radius * sin(angle)]
    return tuple(made)

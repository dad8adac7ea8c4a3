"""Attention over keys, of queries in several heads."""

from ..._base import dtypes
from ..._base.error import invalid, public
from ..._definitions import define, views
from ..._expressions.arithmetic import apply, cast, constant
from ..._expressions.text import shape_text
from .._common import same_size, tensor
from .._product import matmul, transposed
from .._short import wide_of
from ._activation import softmax

__all__ = ["attention"]


@public
def attention(query, key, value, causal=False, scale=None):
    """softmax(query @ key.T * scale) @ value over the last two dimensions; the scale is one over the root of their
    length. With `causal` a query sees the keys up to its own place, the last query all of them. Of floats of 16 bits, sums
    and softmax are computed in float32, and weights are rounded to the type of the values."""
    where = "topi.nn.attention"
    query, key, value = tensor(query, where), tensor(key, where), tensor(value, where)
    for each in (query, key, value):
        if each.ndim < 2 or each.ndim != query.ndim:
            raise invalid(
                "ARGUMENT_RANK",
                f"{where}: {each.name} has shape {shape_text(each.shape)}, but queries, keys and values must have the same number "
                "of dimensions, at least 2",
            )
    if not same_size(key.shape[-2], value.shape[-2]):
        raise invalid(
            "ARGUMENT_SHAPE",
            f"{where}: {key.name} has shape {shape_text(key.shape)} and {value.name} {shape_text(value.shape)}, but they must "
            "have one dimension -2",
        )
    dtype = dtypes.promoted(dtypes.promoted(query.dtype, key.dtype), value.dtype)
    wide = wide_of(dtype)
    looks = matmul(query, transposed(key, True), out_dtype=wide)
    later = key.shape[-2] - query.shape[-2]
    factor = constant(scale, wide) if scale is not None else apply("rsqrt", cast(wide, query.shape[-1]))

    def look(*i):
        scaled = looks(*i) * factor
        return apply("select", i[-1] <= i[-2] + later, scaled, constant(float("-inf"), wide)) if causal else scaled

    weights = softmax(define.compute(looks.shape, look, name="T_looks"))
    return matmul(views.cast(weights, dtype), value)

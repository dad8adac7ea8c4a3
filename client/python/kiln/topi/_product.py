"""Products of matrices and their kin."""

from .._base import dtypes
from .._base.error import invalid, public
from .._definitions import define, views
from .._definitions.built_in import operator
from .._expressions import reduce
from .._expressions.text import shape_text
from ._common import normal_axis, same_size, tensor
from ._shape import squeeze
from ._short import rounded, sums_in_float32, wide_of

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def as_type(a, b, dtype, where):
    """Both operands in one type: the one asked for, or the one in which they meet."""
    dtype = dtypes.dtype_name(dtype, where) if dtype else dtypes.promoted(a.dtype, b.dtype)
    return views.cast(a, dtype), views.cast(b, dtype)


def transposed(a, wanted):
    """The last two dimensions exchanged if `wanted`."""
    if not wanted:
        return a
    order = list(range(a.ndim))
    return views.permuted(a, [*order[:-2], *order[:-3:-1]])


def agree(where, a, d, b, e, stretches=False):
    """Dimension `d` of `a` and `e` of `b` are of one size, as far as it is known; or 1, where that stretches."""
    has, wants = a.shape[d], b.shape[e]
    known = isinstance(has, int) and isinstance(wants, int)
    if not known or has == wants or (stretches and 1 in (has, wants)):
        return
    raise invalid(
        "ARGUMENT_SHAPE",
        f"{where}: {a.name} has shape {shape_text(a.shape)} and {b.name} {shape_text(b.shape)}; dimension "
        f"{d % a.ndim} of {a.name} is {has}, but dimension {e % b.ndim} of {b.name} is {wants}",
    )


@_export
@sums_in_float32
def matmul(a, b, transp_a=False, transp_b=False, out_dtype=None, transpose_a=False, transpose_b=False):
    """a @ b as numpy.matmul has it, each transposed first if asked."""
    transp_a, transp_b = transp_a or transpose_a, transp_b or transpose_b
    a, b = tensor(a, "topi.matmul"), tensor(b, "topi.matmul")
    if a.ndim and b.ndim:
        inner_a = -2 if transp_a and a.ndim > 1 else -1
        inner_b = -1 if transp_b or b.ndim == 1 else -2
        agree("topi.matmul", a, inner_a, b, inner_b)
    a, b = as_type(a, b, out_dtype, "topi.matmul")
    if a.ndim == 1 and b.ndim == 1:
        return operator("dot")(a, b, name="T_matmul")
    if a.ndim == 1:
        row = views.expanded(a, [1], 2)
        return _without(operator("matmul")(row, transposed(b, transp_b), name="T_matmul"), -2)
    if b.ndim == 1:
        column = views.expanded(b, [0], 2)
        return _without(operator("matmul")(transposed(a, transp_a), column, name="T_matmul"), -1)
    return operator("matmul")(transposed(a, transp_a), transposed(b, transp_b), name="T_matmul")


def _without(product, axis):
    return squeeze(product, axis)


@_export
@sums_in_float32
def batch_matmul(x, y, transpose_a=False, transpose_b=True, out_dtype=None):
    """As nn.batch_matmul."""
    x, y = tensor(x, "topi.nn.batch_matmul"), tensor(y, "topi.nn.batch_matmul")
    for each in (x, y):
        if each.ndim != 3:
            raise invalid(
                "ARGUMENT_RANK",
                f"topi.nn.batch_matmul: {each.name} has shape {shape_text(each.shape)}, but must have "
                "3 dimensions",
            )
    agree("topi.nn.batch_matmul", x, 0, y, 0, stretches=True)
    agree("topi.nn.batch_matmul", x, 1 if transpose_a else 2, y, 2 if transpose_b else 1)
    x, y = as_type(x, y, out_dtype, "topi.nn.batch_matmul")
    return operator("matmul")(
        transposed(x, transpose_a), transposed(y, transpose_b), name="T_batch_matmul"
    )


@_export
def tensordot(a, b, axes):
    """Sums products over pairs of dimensions: `axes` is their number (the last of a, the first of b), or
    two lists."""
    a, b = tensor(a, "topi.tensordot"), tensor(b, "topi.tensordot")
    if isinstance(axes, (list, tuple)):
        first, second = ([x] if not isinstance(x, (list, tuple)) else list(x) for x in axes)
    else:
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    first = [normal_axis(a, axis, "topi.tensordot") for axis in first]
    second = [normal_axis(b, axis, "topi.tensordot") for axis in second]
    pairs = list(zip(first, second))
    if len(first) != len(second):
        raise invalid(
            "TENSORDOT",
            f"topi.tensordot: {len(first)} axes of {a.name}, but {len(second)} of {b.name}",
        )
    for p, q in pairs:
        if not same_size(a.shape[p], b.shape[q]):
            raise invalid(
                "TENSORDOT",
                f"topi.tensordot: dimension {p} of {a.name} and dimension {q} of {b.name} must agree; "
                f"the shapes are {shape_text(a.shape)} and {shape_text(b.shape)}",
            )
    letters = "abcdefghijklmnopqrstuvwxyz"
    of_a = list(letters[: a.ndim])
    of_b = list(letters[a.ndim : a.ndim + b.ndim])
    for p, q in pairs:
        of_b[q] = of_a[p]
    summed = {of_a[p] for p in first}
    result = [x for x in (*of_a, *of_b) if x not in summed]
    return einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join(result)}", a, b)


@_export
def einsum(subscripts, *operands):
    """Einstein's summation, as numpy.einsum."""
    where = "topi.einsum"
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    operands = [tensor(each, where) for each in operands]
    subscripts = _without_dots(subscripts, operands)
    inputs, result = _subscripts(subscripts.replace(" ", ""), operands)
    sizes = {}
    for letters, each in zip(inputs, operands):
        for d, letter in enumerate(letters):
            known = sizes.setdefault(letter, (each.shape[d], each, d))
            if not same_size(known[0], each.shape[d]):
                raise invalid(
                    "EINSUM",
                    f"{where}: {letter} is dimension {known[2]} of {known[1].name} of shape "
                    f"{shape_text(known[1].shape)} and dimension {d} of {each.name} of shape "
                    f"{shape_text(each.shape)}, which must agree",
                )
    dtype = operands[0].dtype
    for each in operands[1:]:
        dtype = dtypes.promoted(dtype, each.dtype)
    operands = [views.cast(each, wide_of(dtype)) for each in operands]
    summed = [letter for letter in sizes if letter not in result]

    def body(*index):
        place = dict(zip(result, index))
        axes = [define.reduce_axis((0, sizes[letter][0]), name=letter) for letter in summed]
        place.update(zip(summed, axes))
        product = None
        for letters, each in zip(inputs, operands):
            factor = each(*(place[letter] for letter in letters))
            product = factor if product is None else product * factor
        return reduce.sum(product, axis=axes)

    sums = define.compute(
        [sizes[letter][0] for letter in result], body, name="T_einsum", varargs_names=list(result)
    )
    return rounded(sums, dtype)


def _without_dots(text, operands):
    """"..." written out: letters that are not used, one for each dimension that the others leave."""
    if "..." not in text:
        return text
    left, arrow, result = text.replace(" ", "").partition("->")
    free = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if letter not in text]
    inputs, longest = left.split(","), 0
    for place, (letters, each) in enumerate(zip(inputs, operands)):
        if "..." in letters:
            count = max(0, each.ndim - len(letters.replace("...", "")))
            longest = max(longest, count)
            inputs[place] = letters.replace("...", "".join(free[:count][::-1]))
    dots = "".join(free[:longest][::-1])
    if not arrow:
        once = sorted(x for x in set(left) - set(".,") if left.count(x) == 1)
        return f"{','.join(inputs)}->{dots}{''.join(once)}"
    return f"{','.join(inputs)}->{result.replace('...', dots)}"


def _subscripts(text, operands):
    left, arrow, result = text.partition("->")
    inputs = left.split(",")
    letters = "".join(inputs)
    if not arrow:
        result = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    wrong = (
        len(inputs) != len(operands)
        or any(len(x) != each.ndim for x, each in zip(inputs, operands))
        or not all(x.isalpha() for x in letters + result)
        or len(set(result)) != len(result)
        or not set(result) <= set(letters)
    )
    if wrong:
        shapes = ", ".join(shape_text(each.shape) for each in operands)
        raise invalid("EINSUM", f"topi.einsum: {text} does not fit tensors of the shapes {shapes}")
    return inputs, list(result)

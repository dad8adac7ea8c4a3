"""What Python and numpy ask of a number, and no expression can answer: its value is not known yet."""

import numpy as np

from .._base.error import invalid, public
from .._tables import OPERATORS

_NAMES = {name for name, *_ in OPERATORS}

# numpy's name -> ours, where they differ.
_OF_NUMPY = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "fmax": "max", "fmin": "min", "maximum": "max", "minimum": "min",
    "rint": "nearbyint",
}  # fmt: skip

# What `number op expression` asks numpy for: the method of the left operand, and of the right one.
_METHODS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}


def numpy_function(owner, function, method, inputs):
    """Arithmetic of a numpy number and an expression; any other function of numpy is refused."""
    inputs = [each[()] if isinstance(each, np.ndarray) and not each.ndim else each for each in inputs]
    if method == "__call__" and function.__name__ in _METHODS and len(inputs) == 2:
        left, right = _METHODS[function.__name__]
        if isinstance(inputs[0], owner):
            return getattr(inputs[0], left)(inputs[1])
        return getattr(inputs[1], right)(inputs[0])
    given = next(each for each in inputs if isinstance(each, owner))
    name = _OF_NUMPY.get(function.__name__, function.__name__)
    instead = f"te.{name}" if name in _NAMES or name == "nearbyint" else "a function of te, as te.exp"
    raise invalid(
        "NUMPY_FUNCTION",
        f"numpy.{function.__name__} takes numbers, but {given} is known only when the kernel runs; write {instead}",
    )


def _refuse(reason, sentence):
    def ask(self, *args):
        raise invalid(reason, f"{self} is known only when the kernel runs, so {sentence}")

    return public(ask)


class UnknownValue:
    """The methods by which Python asks a number for its value."""

    __slots__ = ()

    __bool__ = _refuse(
        "TRUTH_VALUE",
        "Python cannot decide by it: write te.if_then_else(condition, a, b) for if, te.all, te.any and "
        "te.logical_not for and, or and not, te.min and te.max for min and max",
    )
    __index__ = _refuse(
        "NO_PYTHON_NUMBER",
        "it is no index of a list or an array and no end of a Python range: read elements of a te.placeholder, "
        "and run over a range with te.reduce_axis",
    )
    __int__ = _refuse("NO_PYTHON_NUMBER", 'int() cannot take it: write .astype("int64")')
    __float__ = _refuse(
        "NO_PYTHON_NUMBER",
        'functions of Python numbers cannot take it: write .astype("float32") for float(), te.exp for math.exp',
    )
    __round__ = __floor__ = __ceil__ = __trunc__ = _refuse(
        "NO_PYTHON_NUMBER",
        "functions of Python numbers cannot take it: write te.round, te.floor, te.ceil or te.trunc",
    )
    __array__ = _refuse(
        "NO_PYTHON_NUMBER",
        "numpy cannot take it, neither as a value nor as an index: declare a te.placeholder for the array, read its "
        "elements, and pass the array when the kernel is called",
    )

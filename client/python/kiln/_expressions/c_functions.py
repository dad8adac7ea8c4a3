"""Functions of C and CUDA by their names, as programs write them for a compiler that links: `call_pure_extern("float32",
"__expf", x)` is exp(x) here, and so are rules that lower an intrinsic to such a call.

Kiln computes each as its own operator, with the accuracy that docs/language.md states for every target: a name that means
"fast and rough" in CUDA gives that accuracy, too. No code of a client is linked or run, so other names are refused.
"""

from .._base.error import invalid, public, unsupported
from .._base.suggest import nearest
from . import operators
from .arithmetic import apply, as_expr, cast

# Of one or more arguments, under the name that C has for doubles.
_OPERATORS = {
    "fabs": "abs", "pow": "power", "fmax": "max", "fmin": "min", "rint": "round", "nearbyint": "round", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite", "popc": "popcount", "clz": "clz",
    **{
        name: name
        for name in (
            "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos",
            "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "abs", "fmod",
            "atan2", "hypot", "copysign", "ldexp", "nextafter", "power", "max", "min", "sigmoid", "expm1", "cbrt", "fma",
        )
    },
}  # fmt: skip


def _round(x):
    """Halves away from zero, as C's round."""
    whole = apply("trunc", x)
    return apply("select", apply("abs", x - whole) >= 0.5, whole + apply("copysign", as_expr(1.0, x.dtype), x), whole)


_MADE = {
    "round": _round,
    "fdividef": lambda a, b: a / b,
    "fdivide": lambda a, b: a / b,
    "saturate": lambda x: apply("min", apply("max", x, 0.0), 1.0),
}


def _function(name):
    """What is computed for a name: `expf`, `__expf` and `exp` are one function."""
    plain = name.removeprefix("__nv_").removeprefix("__")
    for candidate in (plain, plain[:-1] if plain.endswith(("f", "l")) else plain):
        if candidate in _MADE:
            return _MADE[candidate]
        operator = _OPERATORS.get(candidate)
        if operator is not None:
            own = getattr(operators, operator, None)
            return own if own is not None else lambda *operands: apply(operator, *operands)
    return None


def _known():
    return sorted({*_OPERATORS, *_MADE})


def _call(spelling):
    @public
    def call(dtype, func_name, *args, span=None):
        function = _function(str(func_name))
        if function is None:
            raise unsupported(
                "NOT_PART_OF_KILN",
                f"{spelling}: Kiln links no code, and {func_name} is none of the functions of C that it computes itself, "
                f"such as expf, powf or fmaxf{nearest(str(func_name), _known())}",
            )
        try:
            return cast(dtype, function(*map(as_expr, args)))
        except TypeError:
            raise invalid(
                "OPERAND_COUNT", f"{spelling}: {func_name} does not take {len(args)} argument"
                + ("" if len(args) == 1 else "s")
            ) from None

    call.__name__ = call.__qualname__ = spelling.removeprefix("tir.")
    call.__doc__ = "A function of C by its name, computed by Kiln's own operator."
    return call


call_extern, call_pure_extern = _call("tir.call_extern"), _call("tir.call_pure_extern")

# Rules for intrinsics, as programs register them: name -> function of a Call that gives an expression.
_RULES = {}


class Call:
    """What a rule is given: the intrinsic's `op.name`, its `args` and its `dtype`."""

    def __init__(self, name, dtype, args):
        self.name = name
        self.op = self
        self.dtype = dtype
        self.args = list(args)


@public
def register_intrin_lowering(op_name, target="default", f=None, level=10):
    """A rule for an intrinsic of the program's own, which call_intrin then follows. Those that Kiln has stay as they
    are: their accuracy is the same on every target."""
    if f is None:
        return lambda rule: register_intrin_lowering(op_name, target, rule, level)
    _RULES[_short(op_name)] = f
    return f


@public
def register_intrin_rule(target, intrin, f=None, override=False):
    """As register_intrin_lowering, in the order of older programs."""
    return register_intrin_lowering(intrin, target, f)


@public
def register_op_attr(op_name, attr_key, value=None, level=10):
    """Nothing is left to say of an intrinsic: what a rule gives is an expression without effects."""
    return (lambda given: given) if value is None else value


def intrinsic(name, dtype, args):
    """The expression that a registered rule gives, or None where there is no rule."""
    rule = _RULES.get(_short(name))
    if rule is None:
        return None
    value = rule(Call(f"tir.{_short(name)}", dtype, [as_expr(each) for each in args]))
    if value is None or isinstance(value, Call):
        raise invalid("INTRINSIC", f"the rule for {name} gave no expression for {dtype}")
    return cast(dtype, value)


def _short(name):
    return str(name).removeprefix("tir.")

"""Recurrent layers, as scans."""

from ..._base.error import invalid, public
from ..._definitions import define
from ..._expressions import reduce
from ..._expressions.arithmetic import apply, cast
from ..._expressions.text import shape_text
from .._common import tensor

__all__ = []


def _export(function):
    __all__.append(function.__name__)
    return public(function)


def _sigmoid(x):
    return apply("sigmoid", x)


def _tanh(x):
    return apply("tanh", x)


@_export
def lstm(Xs, Wi, Wh, Bi=None, Bh=None, h_init=None, c_init=None, proj=None, p_i=None, p_f=None, p_o=None,
         f_act=None, g_act=None, h_act=None, reverse=False, weight_layout="IFGO"):  # fmt: skip
    """A layer of long short-term memory: data (time, batch, c), weights (4 * h, c) and (4 * h, h) whose gates stand in the
    order of `weight_layout`, biases (4 * h,). Gives all hidden states and all cells, (time, batch, h). The activations are
    functions of an expression."""
    where = "topi.nn.lstm"
    if proj is not None or any(each is not None for each in (p_i, p_f, p_o)):
        raise invalid("LSTM", f"{where} has no projection and no peepholes; write the layer as a te.scan")
    if sorted(weight_layout) != list("FGIO"):
        raise invalid("LAYOUT", f"{where}: weight_layout {weight_layout!r} must have the letters I, F, G and O once each")
    X, wi, wh = (tensor(each, where) for each in (Xs, Wi, Wh))
    if X.ndim != 3 or wi.ndim != 2 or wh.ndim != 2:
        raise invalid(
            "ARGUMENT_RANK", f"{where} takes data of 3 dimensions and weights of 2, but got {shape_text(X.shape)}, "
            f"{shape_text(wi.shape)} and {shape_text(wh.shape)}"
        )
    f_act, g_act, h_act = f_act or _sigmoid, g_act or _tanh, h_act or _tanh
    steps, batch, width = X.shape
    hidden = wh.shape[1]
    gate = {letter: place for place, letter in enumerate(weight_layout)}

    def from_input(t, b, g, j):
        k = define.reduce_axis((0, width), name="k")
        total = reduce.sum(X(steps - 1 - t if reverse else t, b, k) * wi(g * hidden + j, k), axis=k)
        for bias in (Bi, Bh):
            total = total if bias is None else total + bias(g * hidden + j)
        return total

    inputs = define.compute((steps, batch, 4, hidden), from_input, name="lstm_inputs")
    shape = (steps + 1, batch, hidden)
    h_state, c_state = (define.placeholder(shape, X.dtype, name=name) for name in ("lstm_h", "lstm_c"))
    zero = cast(X.dtype, 0)
    h_first = define.compute((1, batch, hidden), lambda _, b, j: zero if h_init is None else h_init(b, j), name="h_first")
    c_first = define.compute((1, batch, hidden), lambda _, b, j: zero if c_init is None else c_init(b, j), name="c_first")

    def from_state(t, b, g, j):
        k = define.reduce_axis((0, hidden), name="k")
        return reduce.sum(h_state(t - 1, b, k) * wh(g * hidden + j, k), axis=k)

    states = define.compute((*shape[:2], 4, hidden), from_state, name="lstm_states")
    value = lambda letter, t, b, j: inputs(t - 1, b, gate[letter], j) + states(t, b, gate[letter], j)  # noqa: E731
    c_next = define.compute(
        shape,
        lambda t, b, j: f_act(value("F", t, b, j)) * c_state(t - 1, b, j)
        + f_act(value("I", t, b, j)) * g_act(value("G", t, b, j)),
        name="c_next",
    )
    h_next = define.compute(shape, lambda t, b, j: f_act(value("O", t, b, j)) * h_act(c_next(t, b, j)), name="h_next")
    h_all, c_all = define.scan([h_first, c_first], [h_next, c_next], [h_state, c_state], name="lstm")
    cut = lambda states, name: define.compute(  # noqa: E731
        (steps, batch, hidden), lambda t, b, j: states(t + 1, b, j), name=name
    )
    return cut(h_all, "hidden_states"), cut(c_all, "cell_states")


@_export
def gru(Xs, Wi, Wh, Bi=None, Bh=None, h_init=None):
    """A layer of gated recurrent units: data (time, batch, c), weights (3 * h, c) and (3 * h, h), biases (3 * h,), whose
    gates are reset, update and new. Gives all hidden states, (time, batch, h)."""
    where = "topi.nn.gru"
    X, wi, wh = (tensor(each, where) for each in (Xs, Wi, Wh))
    if X.ndim != 3 or wi.ndim != 2 or wh.ndim != 2:
        raise invalid(
            "ARGUMENT_RANK", f"{where} takes data of 3 dimensions and weights of 2, but got {shape_text(X.shape)}, "
            f"{shape_text(wi.shape)} and {shape_text(wh.shape)}"
        )  # fmt: skip
    steps, batch, width = X.shape
    hidden = wh.shape[1]

    def product(read, weights, size, bias, g, j):
        k = define.reduce_axis((0, size), name="k")
        total = reduce.sum(read(k) * weights(g * hidden + j, k), axis=k)
        return total if bias is None else total + bias(g * hidden + j)

    inputs = define.compute(
        (steps, batch, 3, hidden), lambda t, b, g, j: product(lambda k: X(t, b, k), wi, width, Bi, g, j), name="gru_inputs"
    )
    shape = (steps + 1, batch, hidden)
    state = define.placeholder(shape, X.dtype, name="gru_h")
    first = define.compute(
        (1, batch, hidden), lambda _, b, j: cast(X.dtype, 0) if h_init is None else h_init(b, j), name="h_first"
    )
    states = define.compute(
        (*shape[:2], 3, hidden),
        lambda t, b, g, j: product(lambda k: state(t - 1, b, k), wh, hidden, Bh, g, j),
        name="gru_states",
    )

    def following(t, b, j):
        reset, update = (_sigmoid(inputs(t - 1, b, g, j) + states(t, b, g, j)) for g in (0, 1))
        new = _tanh(inputs(t - 1, b, 2, j) + reset * states(t, b, 2, j))
        return (1 - update) * new + update * state(t - 1, b, j)

    everything = define.scan(first, define.compute(shape, following, name="h_next"), state, name="gru")
    return define.compute((steps, batch, hidden), lambda t, b, j: everything(t + 1, b, j), name="hidden_states")

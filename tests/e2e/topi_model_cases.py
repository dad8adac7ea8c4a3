"""One row for each use of the operators that models are trained with: attention, recurrent units, batch normalization, orders."""

import numpy as np
from topi_cases import CASES as _ELEMENTWISE
from topi_cases import case as _case
from topi_cases import real, sigmoid
from topi_nn_cases import batch_norm

from kiln import topi
from kiln.topi import nn

CASES = []


def case(*row, **tolerances):
    _case(*row, **tolerances)
    CASES.append(_ELEMENTWISE.pop())


def attention(q, k, v, causal=False, scale=None):
    looks = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        later = k.shape[-2] - q.shape[-2]
        looks = np.where(np.tri(q.shape[-2], k.shape[-2], later, bool), looks, -np.inf)
    e = np.exp(looks - looks.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


HEADS = real(2, 3, 5, 4), real(2, 3, 6, 4), real(2, 3, 6, 7)
case("nn.attention", nn.attention, attention, *HEADS, atol=1e-5)
case("nn.attention causal", lambda *o: nn.attention(*o, causal=True), lambda *o: attention(*o, causal=True), *HEADS,
     atol=1e-5)
case("nn.attention scaled", lambda *o: nn.attention(*o, scale=0.3), lambda *o: attention(*o, scale=0.3),
     real(5, 4), real(6, 4), real(6, 3), atol=1e-5)


def gru(x, wi, wh, bi, bh, h):
    hs = []
    for step in x:
        (ri, zi, ni), (rh, zh, nh) = (np.split(v, 3, axis=1) for v in (step @ wi.T + bi, h @ wh.T + bh))
        z = sigmoid(zi + zh)
        h = (1 - z) * np.tanh(ni + sigmoid(ri + rh) * nh) + z * h
        hs.append(h)
    return np.stack(hs)


def weights(gates):
    return real(5, 2, 3), real(gates * 4, 3), real(gates * 4, 4), real(gates * 4), real(gates * 4), real(2, 4)


case("nn.gru", nn.gru, gru, *weights(3), atol=1e-5)
case("nn.gru from zeros", nn.gru, lambda *o: gru(*o, 0, 0, np.zeros((2, 4))), *weights(3)[:3], atol=1e-5)


BATCH, OF_CHANNELS = real(2, 3, 4, 5), [real(3), real(3), real(3), real(3, low=0.5)]
case("nn.batch_norm in training", lambda *o: nn.batch_norm(*o, training=True)[0],
     lambda x, g, b, m, v: batch_norm(x, g, b, x.mean((0, 2, 3)), x.var((0, 2, 3))), BATCH, *OF_CHANNELS, atol=1e-5)
case("nn.batch_norm moves its mean", lambda *o: nn.batch_norm(*o, training=True)[1],
     lambda x, g, b, m, v: 0.9 * m + 0.1 * x.mean((0, 2, 3)), BATCH, *OF_CHANNELS)
case("nn.batch_norm moves its variance", lambda *o: nn.batch_norm(*o, training=True, momentum=0.3)[2],
     lambda x, g, b, m, v: 0.7 * v + 0.3 * x.var((0, 2, 3)), BATCH, *OF_CHANNELS)

DISTINCT = real(3, 9)
case("sort of distinct elements", topi.sort, np.sort, DISTINCT)
case("topk of distinct elements", lambda x: topi.topk(x, 4)[0], lambda x: -np.sort(-x)[:, :4], DISTINCT)

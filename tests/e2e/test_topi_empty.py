"""Operators of kiln.topi on tensors without elements: numpy's results, whether the sizes are known or not."""

import numpy as np
import pytest

from kiln import te, topi
from kiln.topi import nn

CASES = [
    ("exp", topi.exp, np.exp),
    ("add", lambda x: topi.add(x, x), lambda x: x + x),
    ("where", lambda x: topi.where(x > 0, x, x), lambda x: x),
    ("sum", topi.sum, np.sum),
    ("sum along 0", lambda x: topi.sum(x, 0), lambda x: x.sum(0)),
    ("prod along 1", lambda x: topi.prod(x, 1), lambda x: x.prod(1)),
    ("any", topi.any, np.any),
    ("transpose", topi.transpose, np.transpose),
    ("reshape", lambda x: topi.reshape(x, x.shape[::-1]), lambda x: x.reshape(x.shape[::-1])),
    ("concatenate", lambda x: topi.concatenate((x, x), 0), lambda x: np.concatenate((x, x))),
    ("concatenate along 1", lambda x: topi.concatenate((x, x), 1), lambda x: np.concatenate((x, x), 1)),
    ("stack", lambda x: topi.stack((x, x)), lambda x: np.stack((x, x))),
    ("flip", topi.flip, lambda x: np.flip(x, 0)),
    ("tile", lambda x: topi.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3))),
    ("repeat", lambda x: topi.repeat(x, 2, 1), lambda x: x.repeat(2, 1)),
    ("roll", lambda x: topi.roll(x, 1, 1), lambda x: np.roll(x, 1, 1)),
    ("sort", topi.sort, np.sort),
    ("sort along 0", lambda x: topi.sort(x, 0), lambda x: np.sort(x, 0)),
    ("trilu", lambda x: topi.trilu(x, 0, True), np.triu),
    ("expand_dims", lambda x: topi.expand_dims(x, 1), lambda x: x[:, None]),
    ("broadcast_to", lambda x: topi.broadcast_to(x, (2, *x.shape)), lambda x: np.broadcast_to(x, (2, *x.shape))),
    ("full_like", lambda x: topi.full_like(x, 1), np.ones_like),
    ("one_hot", lambda x: topi.one_hot(topi.cast(x, "int32"), 1, 0, 4, -1, "float32"),
     lambda x: np.zeros((*x.shape, 4), "float32")),
    ("take nothing", lambda x: topi.take(x, topi.full((0,), "int32", 0), 0), lambda x: x[:0]),
    ("layout_transform", lambda x: topi.layout_transform(x, "NC", "CN"), np.transpose),
    ("searchsorted in nothing", lambda x: topi.searchsorted(topi.full((0,), "float32", 0), x),
     lambda x: np.zeros(x.shape, "int64")),
    ("shape", topi.shape, lambda x: np.array(x.shape, "int32")),
    ("matmul", lambda x: topi.matmul(x, x, transpose_b=True), lambda x: x @ x.T),
    ("einsum", lambda x: topi.einsum("ij->ji", x), np.transpose),
    ("nn.dense", lambda x: nn.dense(x, x), lambda x: x @ x.T),
    ("nn.softmax", nn.softmax, lambda x: x),
    ("nn.relu", nn.relu, lambda x: x),
    ("nn.pad", lambda x: nn.pad(x, (1, 2)), lambda x: np.pad(x, ((1, 1), (2, 2)))),
]  # fmt: skip
OF_KNOWN_SIZES = [
    ("flatten", lambda x: topi.reshape(x, (-1,)), lambda x: x.reshape(-1)),
    ("cumsum", topi.cumsum, np.cumsum),
    ("cumsum along 1", lambda x: topi.cumsum(x, 1), lambda x: x.cumsum(1)),
    ("unique", lambda x: topi.unique(topi.reshape(x, (-1,)))[0], lambda x: x.reshape(-1)),
    ("argwhere", lambda x: topi.argwhere((0, 2), x), lambda x: np.argwhere(x).astype("int32")),
    ("nn.space_to_batch_nd", lambda x: nn.space_to_batch_nd(x, [1], [0], [0]), lambda x: x),
]  # fmt: skip


@pytest.mark.parametrize("name, apply, expected", CASES + OF_KNOWN_SIZES, ids=[row[0] for row in CASES + OF_KNOWN_SIZES])
def test_nothing_gives_what_numpy_gives(shared_daemon, name, apply, expected):
    for shape in ((0, 3), (3, 0), (0, 0)):
        x = np.zeros(shape, "float32")
        for sizes in (shape, (te.var("n"), te.var("m")))[: 1 + ((name, apply, expected) in CASES)]:
            A = te.placeholder(sizes, name="A")
            found = shared_daemon.build([A, apply(A)])(x).numpy()
            wanted = np.asarray(expected(x))
            assert found.shape == wanted.shape and found.dtype == wanted.dtype, sizes
            np.testing.assert_array_equal(found, wanted)

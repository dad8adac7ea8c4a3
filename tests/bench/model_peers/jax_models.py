"""By jax, compiled."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from model_peers import data


def _run(function, weights, *inputs):
    function = jax.jit(function)
    weights = {name: jnp.array(value) for name, value in weights.items()}
    inputs = [jnp.array(value) for value in inputs]
    return lambda: np.asarray(function(weights, *inputs))


def resnet(sizes):
    import resnet as example

    def conv(x, f, stride, padding, scale, shift):
        y = lax.conv_general_dilated(x, f, (stride, stride), [(padding, padding)] * 2)
        return y * scale[:, None, None] + shift[:, None, None]

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])

    def network(w, x):
        return example.layers(x, w, conv, jax.nn.relu, pool, lambda x: x.mean((2, 3)), lambda x, w, b: x @ w.T + b)

    return _run(network, *data.resnet(sizes))


def lstm(sizes):
    def layer(x, wx, wh):
        def step(state, of_x):
            h, c = state
            i, f, g, o = jnp.split(of_x + h @ wh, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((sizes.batch, sizes.hidden), "float32")
        return lax.scan(step, (zeros, zeros), x @ wx)[1]

    def network(w, x):
        return layer(layer(x, w["l0.x"], w["l0.h"]), w["l1.x"], w["l1.h"])

    return _run(network, *data.lstm(sizes))


def gpt2(sizes):
    import gpt2 as example

    def norm(w, x, name):
        x = x - x.mean(axis=1, keepdims=True)
        return x * lax.rsqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w[f"{name}.g"] + w[f"{name}.b"]

    def network(w, tokens):
        count = len(tokens)
        mask = jnp.tri(count, dtype=bool)
        x = w["wte"][tokens] + w["wpe"][:count]
        for i in range(sizes.layers):
            qkv = norm(w, x, f"h{i}.ln_1") @ w[f"h{i}.qkv.w"] + w[f"h{i}.qkv.b"]
            q, k, v = (part.reshape(count, -1, example.HEAD).transpose(1, 0, 2) for part in jnp.split(qkv, 3, axis=1))
            scores = jnp.where(mask, q @ k.transpose(0, 2, 1) * example.HEAD**-0.5, -jnp.inf)
            mixed = (jax.nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(count, -1)
            x = x + mixed @ w[f"h{i}.proj.w"] + w[f"h{i}.proj.b"]
            y = jax.nn.gelu(norm(w, x, f"h{i}.ln_2") @ w[f"h{i}.fc.w"] + w[f"h{i}.fc.b"])
            x = x + y @ w[f"h{i}.out.w"] + w[f"h{i}.out.b"]
        return norm(w, x[-1:], "ln_f") @ w["wte"].T

    return _run(network, *data.gpt2(sizes))


def mnist(sizes):
    import mnist_peers

    return mnist_peers._jax("mlp", *data.mnist())

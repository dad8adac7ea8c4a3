"""jax.jit, on XLA's CPU back end."""

import jax
import jax.numpy as jnp
import numpy as np

import expressions


class Names:
    """What expressions.py asks of jax."""

    exp, sqrt, tanh, relu, einsum = jnp.exp, jnp.sqrt, jnp.tanh, jax.nn.relu, jnp.einsum
    transposed, cumsum, dense = jnp.transpose, jnp.cumsum, jnp.asarray

    @staticmethod
    def largest(x, axis, keep):
        return x.max(axis=axis, keepdims=keep)

    @staticmethod
    def conv2d(data, weight, stride, padding, dilation):
        pads = [(padding, padding)] * 2
        return jax.lax.conv_general_dilated(data, weight, (stride, stride), pads, rhs_dilation=(dilation, dilation))

    @staticmethod
    def recurrence(x, axis, decay):
        def step(before, new):
            now = decay * before + new
            return now, now

        x = jnp.moveaxis(x, axis, 0)
        return jnp.moveaxis(jax.lax.scan(step, jnp.zeros_like(x[0]), x)[1], 0, axis)


class Peer:
    def __init__(self, threads):
        pass  # as many as the process may use

    def get(self, result):
        return np.asarray(result)

    def call(self, f, *arrays):
        compiled, arrays = jax.jit(f), [jax.device_put(x) for x in arrays]
        return lambda: compiled(*arrays).block_until_ready()

    def expression(self, *arrays, family, parameters):
        run = expressions.expression(Names, family, parameters)
        return run and self.call(run, *arrays)

    def matmul(self, a, b, a_transposed, b_transposed):
        turned = lambda x, yes: x.mT if yes else x
        return self.call(lambda a, b: turned(a, a_transposed) @ turned(b, b_transposed), a, b)

    def conv2d(self, data, weight, stride, padding, groups):
        return self.call(
            lambda x, w: jax.lax.conv_general_dilated(
                x, w, (stride, stride), [(padding, padding)] * 2, feature_group_count=groups
            ),
            data, weight,
        )  # fmt: skip

    def softmax(self, x):
        return self.call(jax.nn.softmax, x)

    def cross_entropy(self, x, labels):
        return self.call(lambda x, y: -(y * jax.nn.log_softmax(x)).sum(-1).mean(), x, labels)

    def layer_norm(self, x, gamma, beta):
        def f(x, g, b):
            d = x - x.mean(-1, keepdims=True)
            return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

        return self.call(f, x, gamma, beta)

    def fma_relu(self, a, b, c):
        return self.call(lambda a, b, c: jnp.maximum(a * b + c, 0), a, b, c)

    def gelu(self, x):
        return self.call(jax.nn.gelu, x)

    def add(self, a, b):
        return self.call(lambda a, b: a + b, a, b)

    def transpose(self, x):
        return self.call(jnp.transpose, x)

    def sum(self, x, axis):
        return self.call(lambda x: x.sum(axis), x)

    def max(self, x, axis):
        return self.call(lambda x: x.max(axis), x)

    def cumsum(self, x, axis):
        return self.call(lambda x: jnp.cumsum(x, axis), x)

    def recurrence(self, x, decay):
        def step(before, new):
            now = decay * before + new
            return now, now

        return self.call(lambda x: jax.lax.scan(step, jnp.zeros_like(x[0]), x)[1], x)

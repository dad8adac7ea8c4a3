"""torch, eager."""

from functools import partial

import torch
import torch.nn.functional as F

import expressions


class Names:
    """What expressions.py asks of torch, which has no recurrence."""

    exp, sqrt, tanh, relu, einsum = torch.exp, torch.sqrt, torch.tanh, torch.relu, torch.einsum
    transposed, largest = torch.permute, torch.amax

    @staticmethod
    def dense(x):
        return x.contiguous()

    @staticmethod
    def cumsum(x, axis):
        return x.cumsum(axis)

    @staticmethod
    def conv2d(data, weight, stride, padding, dilation):
        return F.conv2d(data, weight, stride=stride, padding=padding, dilation=dilation)


class Peer:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def get(self, result):
        return result.numpy()

    @staticmethod
    def compiled(f):
        """What peers/inductor_peer.py replaces."""
        return f

    def call(self, f, *arrays):
        return partial(self.compiled(f), *map(torch.from_numpy, arrays))

    def expression(self, *arrays, family, parameters):
        run = expressions.expression(Names, family, parameters)
        return run and self.call(run, *arrays)

    def matmul(self, a, b, a_transposed, b_transposed):
        turned = lambda x, yes: x.mT if yes else x
        return self.call(lambda a, b: turned(a, a_transposed) @ turned(b, b_transposed), a, b)

    def conv2d(self, data, weight, stride, padding, groups):
        return self.call(
            lambda x, w: F.conv2d(x, w, stride=stride, padding=padding, groups=groups), data, weight
        )

    def softmax(self, x):
        return self.call(lambda x: torch.softmax(x, -1), x)

    def cross_entropy(self, x, labels):
        return self.call(F.cross_entropy, x, labels)

    def layer_norm(self, x, gamma, beta):
        return self.call(lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b), x, gamma, beta)

    def fma_relu(self, a, b, c):
        return self.call(lambda a, b, c: torch.addcmul(c, a, b).relu_(), a, b, c)

    def gelu(self, x):
        return self.call(lambda x: F.gelu(x, approximate="tanh"), x)

    def add(self, a, b):
        return self.call(lambda a, b: a + b, a, b)

    def transpose(self, x):
        return self.call(lambda x: x.T.contiguous(), x)

    def sum(self, x, axis):
        return self.call(lambda x: x.sum(axis), x)

    def max(self, x, axis):
        return self.call(lambda x: x.amax(axis), x)

    def cumsum(self, x, axis):
        return self.call(lambda x: x.cumsum(axis), x)

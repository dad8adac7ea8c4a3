"""torch.compile: the expressions of the eager peer, fused to C++."""

import torch

from peers import torch_peer


class Peer(torch_peer.Peer):
    # These become calls of the same libraries, also where they are part of an expression.
    matmul = conv2d = None

    @staticmethod
    def compiled(f):
        torch._dynamo.reset()
        return torch.compile(f, dynamic=False)

    def fma_relu(self, a, b, c):
        return self.call(lambda a, b, c: (a * b + c).relu(), a, b, c)

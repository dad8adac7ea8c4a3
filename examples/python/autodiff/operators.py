"""Nodes of a graph, and operators: of each its tensor expression and its gradient."""

from kiln import te, topi


class Node:
    """An operator applied to other nodes; without one, a variable, which is fed."""

    def __init__(self, op=None, inputs=(), **attrs):
        self.op, self.inputs, self.attrs = op, inputs, attrs

    def __add__(self, other):
        return add(self, other) if isinstance(other, Node) else add_by_const(self, const=other)

    def __mul__(self, other):
        return mul(self, other) if isinstance(other, Node) else mul_by_const(self, const=other)


class Operator:
    """`compute(*tensors, **attrs)` is the result as a tensor. `gradient(node, g)` has for each input of the
    node its part of the gradient, or None, where `g` is that of the node itself."""

    def __init__(self, name, compute, gradient=None):
        self.name, self.compute, self.gradient = name, compute, gradient

    def __call__(self, *inputs, **attrs):
        return Node(self, inputs, **attrs)


def matmul_gradient(node, g, ta=False, tb=False):
    a, b = node.inputs
    of_a = matmul(b, g, ta=tb, tb=True) if ta else matmul(g, b, tb=not tb)
    of_b = matmul(g, a, ta=True, tb=ta) if tb else matmul(a, g, ta=not ta)
    return [of_a, of_b]


add = Operator("add", topi.add, lambda node, g: [g, g])
add_by_const = Operator("add_by_const", lambda a, const: a + const, lambda node, g: [g])
mul = Operator("mul", topi.multiply, lambda node, g: [g * node.inputs[1], g * node.inputs[0]])
mul_by_const = Operator("mul_by_const", lambda a, const: a * const, lambda node, g: [g * node.attrs["const"]])
relu = Operator("relu", topi.nn.relu, lambda node, g: [relu_gradient(node.inputs[0], g)])
relu_gradient = Operator("relu_gradient", lambda a, g: te.compute(
    a.shape, lambda *i: te.if_then_else(a(*i) > 0, g(*i), 0.0)))
matmul = Operator("matmul", lambda a, b, ta=False, tb=False: topi.matmul(a, b, ta, tb),
                  lambda node, g: matmul_gradient(node, g, **node.attrs))
# The first input once for each row of the second, and the way back.
broadcast_to = Operator("broadcast_to", lambda a, like: topi.broadcast_to(a, like.shape),
                        lambda node, g: [sum_rows(g), None])
sum_rows = Operator("sum_rows", lambda a: topi.sum(a, axis=0), lambda node, g: [broadcast_to(g, node.inputs[0])])
softmax = Operator("softmax", topi.nn.softmax)
# The gradient is that of the sum, not of the mean, as in the course that this follows; it needs none from above.
softmax_cross_entropy = Operator("softmax_cross_entropy", topi.nn.softmax_cross_entropy,
                                 lambda node, _: [softmax(node.inputs[0]) + node.inputs[1] * -1.0, None])

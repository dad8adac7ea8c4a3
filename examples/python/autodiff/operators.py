"""The operators of the graph: shape, tensor expression and gradient of each."""

from graph import Node

from kiln import te


class Operator:
    """`define` gives the arguments of a kernel, the inputs and the result last."""

    name = ""

    def __call__(self, *inputs, **attrs):
        return Node(self, inputs, **attrs)

    def reads(self, node):
        """The inputs that the kernel takes; others only lend their shape."""
        return node.inputs

    def shape(self, node, *inputs):
        return inputs[0]

    def define(self, node, inputs, shape):
        tensors = [te.placeholder(s, "float32", name=n) for s, n in zip(inputs, "AB")]
        return [*tensors, self.compute(node, shape, *tensors)]

    def compute(self, node, shape, *tensors):
        return te.compute(shape, lambda *i: self.element(node, *(t(*i) for t in tensors)), name=self.name)


class Add(Operator):
    name = "add"

    def element(self, node, a, b):
        return a + b

    def gradient(self, node, g):
        return [g, g]


class AddByConst(Operator):
    name = "add_by_const"

    def element(self, node, a):
        return a + node.attrs["const"]

    def gradient(self, node, g):
        return [g]


class Mul(Operator):
    name = "mul"

    def element(self, node, a, b):
        return a * b

    def gradient(self, node, g):
        return [g * node.inputs[1], g * node.inputs[0]]


class MulByConst(Operator):
    name = "mul_by_const"

    def element(self, node, a):
        return a * node.attrs["const"]

    def gradient(self, node, g):
        return [g * node.attrs["const"]]


class Relu(Operator):
    name = "relu"

    def element(self, node, a):
        return te.max(a, 0.0)

    def gradient(self, node, g):
        return [relu_gradient(node.inputs[0], g)]


class ReluGradient(Operator):
    name = "relu_gradient"

    def element(self, node, a, g):
        return te.if_then_else(a > 0.0, g, 0.0)


class MatMul(Operator):
    """op(A) @ op(B), each transposed if `ta`, `tb` say so."""

    name = "matmul"

    def __call__(self, a, b, ta=False, tb=False):
        return Node(self, [a, b], ta=ta, tb=tb)

    def shape(self, node, a, b):
        rows, inner = reversed(a) if node.attrs["ta"] else a
        inner_of_b, columns = reversed(b) if node.attrs["tb"] else b
        assert inner == inner_of_b, f"{node}: {a} and {b} do not fit"
        return rows, columns

    def compute(self, node, shape, a, b):
        ta, tb = node.attrs["ta"], node.attrs["tb"]
        k = te.reduce_axis((0, a.shape[0 if ta else 1]), name="k")
        return te.compute(shape, lambda i, j: te.sum(
            (a[k, i] if ta else a[i, k]) * (b[j, k] if tb else b[k, j]), axis=k), name=self.name)

    def gradient(self, node, g):
        (a, b), ta, tb = node.inputs, node.attrs["ta"], node.attrs["tb"]
        of_a = matmul(b, g, tb, True) if ta else matmul(g, b, False, not tb)
        of_b = matmul(g, a, True, ta) if tb else matmul(a, g, not ta, False)
        return [of_a, of_b]


class BroadcastTo(Operator):
    """The first input once for each row of the second."""

    name = "broadcast_to"

    def reads(self, node):
        return node.inputs[:1]

    def shape(self, node, a, like):
        return like

    def compute(self, node, shape, a):
        return te.compute(shape, lambda i, j: a[j], name=self.name)

    def gradient(self, node, g):
        return [sum_rows(g), None]


class SumRows(Operator):
    name = "sum_rows"

    def shape(self, node, a):
        return a[1:]

    def compute(self, node, shape, a):
        k = te.reduce_axis((0, a.shape[0]), name="k")
        return te.compute(shape, lambda j: te.sum(a[k, j], axis=k), name=self.name)

    def gradient(self, node, g):
        return [broadcast_to(g, node.inputs[0])]


def chances(a):
    """softmax(a), row by row."""
    k, l = (te.reduce_axis((0, a.shape[1]), name=name) for name in "kl")
    top = te.compute(a.shape[:1], lambda i: te.max(a[i, k], axis=k), name="top")
    e = te.compute(a.shape, lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    total = te.compute(a.shape[:1], lambda i: te.sum(e[i, l], axis=l), name="total")
    return te.compute(a.shape, lambda i, j: e[i, j] / total[i], name="softmax")


class Softmax(Operator):
    name = "softmax"

    def compute(self, node, shape, a):
        return chances(a)


class SoftmaxCrossEntropy(Operator):
    """The mean over the batch of -log softmax(A) at the labels B. As in the course this example follows, its
    gradient is that of the sum."""

    name = "softmax_cross_entropy"

    def shape(self, node, a, labels):
        return (1,)

    def compute(self, node, shape, a, labels):
        p, (rows, columns) = chances(a), a.shape
        i, j = te.reduce_axis((0, rows), name="i"), te.reduce_axis((0, columns), name="j")
        losses = te.compute((rows,), lambda i: te.sum(-labels[i, j] * te.log(p[i, j]), axis=j), name="losses")
        return te.compute(shape, lambda _: te.sum(losses[i] / rows, axis=i), name="loss")

    def gradient(self, node, g):
        assert g is None, "the loss is the last node of the graph"
        a, labels = node.inputs
        return [softmax(a) + labels * -1.0, None]


add, add_by_const, mul, mul_by_const = Add(), AddByConst(), Mul(), MulByConst()
relu, relu_gradient, matmul = Relu(), ReluGradient(), MatMul()
broadcast_to, sum_rows = BroadcastTo(), SumRows()
softmax, softmax_cross_entropy = Softmax(), SoftmaxCrossEntropy()

"""Gradients of graphs, and an executor for them: shapes, memory and compiled functions by feed shapes."""

import kiln
from kiln import te


def order_of(nodes, order=None):
    """The nodes and all they need, each after what it needs itself."""
    order = {} if order is None else order
    for node in nodes:
        if node not in order:
            order_of(node.inputs, order)
            order[node] = True
    return list(order)


def gradients(loss, wanted):
    """For each wanted node the node with the gradient of the loss with respect to it."""
    found = {loss: None}
    for node in reversed(order_of([loss])):
        if node.op and node in found:
            for each, part in zip(node.inputs, node.op.gradient(node, found[node])):
                if part is not None:
                    found[each] = found[each] + part if each in found else part
    return [found[node] for node in wanted]


class Executor:
    """Runs the nodes wanted. Functions and memory are made when the shapes of the feeds change."""

    def __init__(self, wanted, build):
        self.wanted, self.build = wanted, build
        self.order, self.feed_shapes = order_of(wanted), None

    def run(self, feeds):
        """The values of the wanted nodes, as arrays; the next run overwrites them."""
        shapes = {node: value.shape for node, value in feeds.items()}
        if shapes != self.feed_shapes:
            self.infer_shapes(shapes)
            self.plan_memory()
            self.functions = {node: self.build(node.op.name, t) for node, t in self.tensors.items()}
            self.feed_shapes = shapes
        values = {**feeds, **self.arrays}
        for node, function in self.functions.items():
            function(*(values[each] for each in node.inputs), values[node])
        return [values[node] for node in self.wanted]

    def infer_shapes(self, feed_shapes):
        """The shape of every node; for each that is computed, the tensors of its kernel, the result last."""
        self.shapes, self.tensors = dict(feed_shapes), {}
        for node in self.order:
            if node.op:
                inputs = [te.placeholder(self.shapes[each], name=n) for each, n in zip(node.inputs, "AB")]
                result = node.op.compute(*inputs, **node.attrs)
                self.shapes[node], self.tensors[node] = result.shape, [*inputs, result]

    def plan_memory(self):
        """An array for each node; one is used again once its last reader has run."""
        last = {each: node for node in self.order for each in node.inputs}
        free, self.arrays, self.allocated = {}, {}, []
        for node in self.tensors:
            ready = free.setdefault(self.shapes[node], [])
            if not ready:
                ready.append(kiln.nd.empty(self.shapes[node], "float32"))
                self.allocated += ready
            self.arrays[node] = ready.pop()
            for each in set(node.inputs):
                if each in self.arrays and last[each] is node and each not in self.wanted:
                    free[self.shapes[each]].append(self.arrays[each])

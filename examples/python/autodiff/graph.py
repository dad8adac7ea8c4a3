"""A graph of operators and an executor for it: shapes, memory and compiled functions by feed shapes."""

import kiln


class Node:
    """A value of the graph: an operator applied to other nodes, or a variable, which is fed."""

    def __init__(self, op, inputs=(), name="", **attrs):
        self.op = op
        self.inputs = list(inputs)
        self.attrs = attrs
        self.name = name or f"{op.name}({', '.join(node.name for node in inputs)})"

    def __add__(self, other):
        from operators import add, add_by_const

        return add(self, other) if isinstance(other, Node) else add_by_const(self, const=other)

    def __mul__(self, other):
        from operators import mul, mul_by_const

        return mul(self, other) if isinstance(other, Node) else mul_by_const(self, const=other)

    def __repr__(self):
        return self.name


def variable(name):
    """A node whose value is given when the graph runs."""
    return Node(None, name=name)


def order_of(nodes):
    """The nodes and all they need, each after what it needs itself."""
    order, seen = [], set()

    def visit(node):
        if node in seen:
            return
        seen.add(node)
        for each in node.inputs:
            visit(each)
        order.append(node)

    for node in nodes:
        visit(node)
    return order


def gradients(output, wanted):
    """For each wanted node the node with the gradient of `output`, a loss, with respect to it."""
    parts = {output: [None]}  # the loss itself: its operator needs no gradient from above
    found = {}
    for node in reversed(order_of([output])):
        given = [part for part in parts.get(node, []) if part is not None]
        found[node] = None
        for part in given:
            found[node] = part if found[node] is None else found[node] + part
        if node.op is None or node not in parts:
            continue
        for each, part in zip(node.inputs, node.op.gradient(node, found[node])):
            if part is not None:
                parts.setdefault(each, []).append(part)
    return [found[node] for node in wanted]


class Executor:
    """Runs the nodes wanted. Functions and memory are made when the shapes of the feeds change."""

    def __init__(self, wanted, device, build):
        self.wanted = wanted
        self.device = device
        self.build = build  # (operator, definition, name) -> a compiled function
        self.order = order_of(wanted)
        self.feed_shapes = None

    def run(self, feeds):
        """The values of the wanted nodes, as arrays of the device; the next run overwrites them."""
        shapes = {node: value.shape for node, value in feeds.items()}
        if shapes != self.feed_shapes:
            self.infer_shapes(shapes)
            self.plan_memory()
            self.compile_functions()
            self.feed_shapes = shapes
        values = dict(feeds)
        for node, function in self.functions.items():
            values[node] = self.arrays[node]
            function(*(values[each] for each in node.op.reads(node)), values[node])
        return [values[node] for node in self.wanted]

    def infer_shapes(self, feed_shapes):
        self.shapes = dict(feed_shapes)
        for node in self.order:
            if node.op is not None:
                self.shapes[node] = node.op.shape(node, *(self.shapes[each] for each in node.inputs))

    def plan_memory(self):
        """An array for each node; one is used again once its last reader has run."""
        last = {}
        for node in self.order:
            for each in node.op.reads(node) if node.op else []:
                last[each] = node
        free, self.arrays, self.allocated = {}, {}, []
        for node in self.order:
            if node.op is None:
                continue
            shape = self.shapes[node]
            ready = free.setdefault(shape, [])
            if not ready:
                ready.append(kiln.nd.empty(shape, "float32", self.device))
                self.allocated.append(ready[0])
            self.arrays[node] = ready.pop()
            for each in set(node.op.reads(node)):
                if each in self.arrays and last[each] is node and each not in self.wanted:
                    free[self.shapes[each]].append(self.arrays[each])

    def compile_functions(self):
        self.functions = {}
        for node in self.order:
            if node.op is not None:
                inputs = [self.shapes[each] for each in node.op.reads(node)]
                arguments = node.op.define(node, inputs, self.shapes[node])
                self.functions[node] = self.build(node.op, arguments)

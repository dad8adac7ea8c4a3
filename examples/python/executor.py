"""An executor of graphs in the manner of a course on deep learning systems, on kiln.Program: nodes without
shapes, which the feeds decide; a program for each set of shapes; results on the device or as numpy arrays."""

import numpy as np

import kiln
from kiln import topi


class Node:
    """An operator applied to nodes: a function of tensors. Without one, a variable, which is fed."""

    def __init__(self, operator=None, *inputs, name=""):
        self.operator, self.inputs, self.name = operator, inputs, name

    def __add__(self, other):
        return Node(topi.add, self, other) if isinstance(other, Node) else Node(lambda a: a + other, self)

    def __mul__(self, other):
        return Node(topi.multiply, self, other) if isinstance(other, Node) else Node(lambda a: a * other, self)

    def __matmul__(self, other):
        return Node(topi.matmul, self, other)


def Variable(name):
    return Node(name=name)


def softmax_cross_entropy(logits, labels):
    return Node(topi.nn.softmax_cross_entropy, logits, labels)


class Executor:
    """Computes the nodes wanted. Shapes are inferred, kernels compiled and memory planned when feeds of new
    shapes come; what is compiled serves others."""

    def __init__(self, eval_node_list):
        self.eval_node_list = eval_node_list
        self.programs = {}  # by the shapes of the feeds

    def run(self, feed_dict, convert_to_numpy_ret_vals=False):
        """The values of the nodes; `feed_dict` has an array for each variable."""
        shapes = tuple((node, array.shape) for node, array in feed_dict.items())
        if shapes not in self.programs:
            self.programs[shapes] = self.traced(feed_dict)
        program, placeholders = self.programs[shapes]
        feeds = {placeholders[node]: array for node, array in feed_dict.items()}
        return list(program.run(feeds, numpy=convert_to_numpy_ret_vals).outputs.values())

    def traced(self, feed_dict):
        """The program of the graph for feeds of these shapes, and its placeholders."""
        program = kiln.Program("executor")
        placeholders = {node: program.input(array.shape, name=node.name) for node, array in feed_dict.items()}
        tensors = dict(placeholders)

        def tensor_of(node):
            if node not in tensors:
                if node.operator is None:
                    raise ValueError(f"{node.name} is not fed")
                tensors[node] = node.operator(*map(tensor_of, node.inputs))
            return tensors[node]

        program.output(**{f"node{i}": tensor_of(node) for i, node in enumerate(self.eval_node_list)})
        return program, placeholders


if __name__ == "__main__":
    x, w, labels = Variable("x"), Variable("w"), Variable("labels")
    scores = Node(topi.nn.relu, x @ w)
    executor = Executor([scores, softmax_cross_entropy(scores, labels)])
    random = np.random.RandomState(0)
    for rows in (4, 8):  # planned anew for other shapes
        feeds = {x: random.normal(size=(rows, 6)), w: random.normal(size=(6, 3)), labels: np.eye(3)[random.randint(3, size=rows)]}
        values, loss = executor.run({n: v.astype("float32") for n, v in feeds.items()}, convert_to_numpy_ret_vals=True)
        np.testing.assert_allclose(values, np.maximum(feeds[x] @ feeds[w], 0), atol=1e-5)
        print(f"{rows} rows: loss {loss:.6f}; agrees with numpy")

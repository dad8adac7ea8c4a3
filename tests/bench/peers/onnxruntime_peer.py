"""onnxruntime. The weights of a convolution are constants of its graph (prepacked), all else is an input."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper


class Peer:
    def __init__(self, threads):
        self.threads = threads

    def get(self, result):
        return result.numpy()

    def graph(self, out_shape, nodes, constants=None, **inputs):
        """`nodes`: (operator, inputs, output, attributes) each; the last output is `out`."""
        graph = helper.make_graph(
            [helper.make_node(op, names, [out], **attrs) for op, names, out, attrs in nodes],
            "graph",
            [helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, v.shape) for k, v in inputs.items()],
            [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, out_shape)],
            [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        values = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in inputs.items()}
        out = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(out_shape, "float32"))
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_ortvalue_output("out", out)

        def run():
            session.run_with_iobinding(binding)
            return out

        run.keep = values
        return run

    def matmul(self, a, b, a_transposed, b_transposed):
        last = {"perm": [*range(a.ndim - 2), a.ndim - 1, a.ndim - 2]}
        nodes = [("Transpose", [k], k + "t", last) for k, t in (("a", a_transposed), ("b", b_transposed)) if t]
        names = ["at" if a_transposed else "a", "bt" if b_transposed else "b"]
        rows, columns = a.shape[-1 if a_transposed else -2], b.shape[-2 if b_transposed else -1]
        return self.graph((*a.shape[:-2], rows, columns), [*nodes, ("MatMul", names, "out", {})], a=a, b=b)

    def conv2d(self, data, weight, stride, padding, groups):
        sizes = [(e + 2 * padding - k) // stride + 1 for e, k in zip(data.shape[2:], weight.shape[2:])]
        attrs = {"strides": [stride] * 2, "pads": [padding] * 4, "group": groups}
        shape = (data.shape[0], weight.shape[0], *sizes)
        return self.graph(shape, [("Conv", ["x", "w"], "out", attrs)], {"w": weight}, x=data)

    def softmax(self, x):
        return self.graph(x.shape, [("Softmax", ["x"], "out", {"axis": -1})], x=x)

    def cross_entropy(self, x, labels):
        nodes = [
            ("LogSoftmax", ["x"], "log", {"axis": -1}),
            ("Mul", ["log", "labels"], "product", {}),
            ("ReduceSum", ["product"], "sum", {"keepdims": 0}),
            ("Mul", ["sum", "scale"], "out", {}),
        ]
        return self.graph((), nodes, {"scale": np.array(-1 / len(x), "float32")}, x=x, labels=labels)

    def layer_norm(self, x, gamma, beta):
        attrs = {"axis": -1, "epsilon": 1e-5}
        node = ("LayerNormalization", ["x", "gamma", "beta"], "out", attrs)
        return self.graph(x.shape, [node], x=x, gamma=gamma, beta=beta)

    def fma_relu(self, a, b, c):
        nodes = [("Mul", ["a", "b"], "m", {}), ("Add", ["m", "c"], "s", {}), ("Relu", ["s"], "out", {})]
        return self.graph(a.shape, nodes, a=a, b=b, c=c)

    def gelu(self, x):
        return self.graph(x.shape, [("Gelu", ["x"], "out", {"approximate": "tanh"})], x=x)

    def add(self, a, b):
        return self.graph(a.shape, [("Add", ["a", "b"], "out", {})], a=a, b=b)

    def transpose(self, x):
        return self.graph(x.shape[::-1], [("Transpose", ["x"], "out", {})], x=x)

    def _reduced(self, op, x, axis):
        constants = {"axes": np.array([axis], "int64")}
        return self.graph((x.shape[1 - axis],), [(op, ["x", "axes"], "out", {"keepdims": 0})], constants, x=x)

    def sum(self, x, axis):
        return self._reduced("ReduceSum", x, axis)

    def max(self, x, axis):
        return self._reduced("ReduceMax", x, axis)

    def cumsum(self, x, axis):
        constants = {"axis": np.array(axis, "int64")}
        return self.graph(x.shape, [("CumSum", ["x", "axis"], "out", {})], constants, x=x)

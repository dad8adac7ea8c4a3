"""Halide, compiled at run time and scheduled by hand. Its axes run innermost first: x[r, c] of numpy is X[c, r] here."""

import os

import halide as hl
import numpy as np

_FLOAT = hl.Float(32)


class Peer:
    def __init__(self, threads):
        os.environ["HL_NUM_THREADS"] = str(threads)
        self.target = hl.get_jit_target_from_environment()
        self.lanes = 16 if "avx512" in str(self.target) else 8
        self.x, self.y, self.xi, self.yi, self.xo, self.yo = map(hl.Var, ("x", "y", "xi", "yi", "xo", "yo"))

    def get(self, result):
        return result

    def inputs(self, *arrays):
        self.arrays = arrays  # a Buffer does not keep what it lies in
        params = []
        for i, array in enumerate(arrays):
            param = hl.ImageParam(_FLOAT, array.ndim, f"in{i}")
            param.set(hl.Buffer(array))
            params.append(param)
        return params

    def call(self, function, shape):
        out = np.empty(shape, "float32")
        buffer = hl.Buffer(out)
        function.compile_jit(self.target)

        def run():
            function.realize(buffer)
            return out

        return run

    def matmul(self, a, b, a_transposed, b_transposed):
        if a.ndim > 2 or a.shape[0] < 64 or a_transposed or b_transposed:
            return None  # the schedule is for rows of both
        A, B = self.inputs(a, b)
        x, y, xi, yi, xo, lanes = self.x, self.y, self.xi, self.yi, self.xo, self.lanes
        product, out, k = hl.Func("product"), hl.Func("out"), hl.RDom([(0, b.shape[0])])
        product[x, y] = hl.f32(0)
        product[x, y] += A[k.x, y] * B[x, k.x]
        out[x, y] = product[x, y]
        out.bound(x, 0, b.shape[1]).bound(y, 0, a.shape[0])
        # Panels of four vectors of columns in parallel; in each, B packed and tiles of six rows in registers.
        inwards = hl.TailStrategy.ShiftInwards
        out.split(x, xo, xi, 4 * lanes, inwards).split(y, y, yi, 6, inwards).reorder(xi, yi, y, xo)
        out.vectorize(xi, lanes).unroll(xi).unroll(yi).parallel(xo)
        product.compute_at(out, y).vectorize(x, lanes).unroll(x).unroll(y)
        product.update().reorder(x, y, k.x).vectorize(x, lanes).unroll(x).unroll(y)
        panel = B.in_(product)
        columns = panel.args()[0]
        panel.compute_at(out, xo).vectorize(columns, lanes).unroll(columns)
        return self.call(out, (a.shape[0], b.shape[1]))

    def reduced_in_vectors(self, function, k, within, at):
        """A reduction along k.x as four vectors of partial results."""
        outer, inner, lane, lanes = hl.RVar("outer"), hl.RVar("inner"), hl.Var("lane"), self.lanes
        partial = function.update().split(k.x, outer, inner, 4 * lanes).rfactor([(inner, lane)])
        partial.compute_at(within, at).vectorize(lane, lanes).unroll(lane)
        partial.update().reorder(lane, outer).vectorize(lane, lanes).unroll(lane)

    def softmax(self, a):
        if a.shape[1] % (8 * self.lanes):
            return None  # guards in the vectors of a row's sum
        (A,) = self.inputs(a)
        x, y, lanes = self.x, self.y, self.lanes
        k = hl.RDom([(0, a.shape[1])])
        largest, power, total, factor, out = map(hl.Func, ("largest", "power", "total", "factor", "out"))
        largest[y] = hl.f32(-3e38)
        largest[y] = hl.max(largest[y], A[k.x, y])
        power[x, y] = hl.fast_exp(A[x, y] - largest[y])
        total[y] = hl.f32(0)
        total[y] += power[k.x, y]
        factor[y] = 1 / total[y]
        out[x, y] = power[x, y] * factor[y]
        out.bound(x, 0, a.shape[1]).vectorize(x, lanes).parallel(y, 4)
        power.compute_at(out, y).vectorize(x, lanes)
        factor.compute_at(out, y)
        for function in (largest, total):
            self.reduced_in_vectors(function, k, out, y)
            function.compute_at(out, y)
        return self.call(out, a.shape)

    def flat(self, f, *arrays):
        """An expression of the elements of vectors."""
        x, xi = self.x, self.xi
        out = hl.Func("out")
        out[x] = f(*(param[x] for param in self.inputs(*arrays)))
        chunk = min(1 << 15, arrays[0].size // 4)
        out.split(x, x, xi, chunk, hl.TailStrategy.ShiftInwards).vectorize(xi, 2 * self.lanes).parallel(x)
        return self.call(out, arrays[0].shape)

    def fma_relu(self, a, b, c):
        return self.flat(lambda a, b, c: hl.max(a * b + c, 0), a, b, c)

    def gelu(self, x):
        def f(x):  # tanh by way of exp: hl.tanh is a call of libm for each element
            inner = hl.f32(2 * np.sqrt(2 / np.pi)) * (x + hl.f32(0.044715) * x * x * x)
            return x / (1 + hl.fast_exp(-inner))

        return self.flat(f, x)

    def add(self, a, b):
        x, y = self.x, self.y
        A, B = self.inputs(a, b)
        out = hl.Func("out")
        out[x, y] = A[x, y] + B[x]
        out.vectorize(x, self.lanes).parallel(y, 16)
        return self.call(out, a.shape)

    def transpose(self, a):
        x, y, xi, yi, lanes = self.x, self.y, self.xi, self.yi, self.lanes
        (A,) = self.inputs(a)
        out = hl.Func("out")
        out[x, y] = A[y, x]
        out.tile(x, y, xi, yi, lanes, lanes).vectorize(xi).unroll(yi).parallel(y)
        A.in_(out).compute_at(out, x).vectorize(A.in_(out).args()[0]).unroll(A.in_(out).args()[1])
        return self.call(out, a.shape[::-1])

    def sum(self, a, axis):
        return self.reduced(lambda before, new: before + new, 0, a, axis)

    def max(self, a, axis):
        return self.reduced(hl.max, -3e38, a, axis)

    def reduced(self, f, start, a, axis):
        x, xi, lanes = self.x, self.xi, self.lanes
        (A,) = self.inputs(a)
        k, whole, out = hl.RDom([(0, a.shape[axis])]), hl.Func("whole"), hl.Func("out")
        whole[x] = hl.f32(start)
        whole[x] = f(whole[x], A[x, k.x] if axis == 0 else A[k.x, x])
        out[x] = whole[x]
        out.bound(x, 0, a.shape[1 - axis])
        if axis == 0:
            out.split(x, x, xi, 8 * lanes).vectorize(xi, lanes).parallel(x)
            whole.compute_at(out, x).vectorize(whole.args()[0], lanes).unroll(whole.args()[0])
            whole.update().reorder(whole.args()[0], k.x).vectorize(whole.args()[0], lanes).unroll(whole.args()[0])
        else:
            out.split(x, x, xi, 16).parallel(x)
            self.reduced_in_vectors(whole, k, out, xi)
            whole.compute_at(out, xi)
        return self.call(out, a.shape[1 - axis])

    def cumsum(self, a, axis):
        if axis == 0:
            return self.down(lambda before, new: before + new, a, 16)

    def recurrence(self, a, decay):
        return self.down(lambda before, new: hl.f32(decay) * before + new, a, 4)

    def down(self, f, a, vectors):
        """Rows that depend on the row before; columns in parallel, so many vectors of them at once."""
        x, y, xi, lanes = self.x, self.y, self.xi, self.lanes
        (A,) = self.inputs(a)
        out, k = hl.Func("out"), hl.RDom([(1, a.shape[0] - 1)])
        out[x, y] = hl.undef(_FLOAT)
        out[x, 0] = A[x, 0]
        out[x, k.x] = f(out[x, k.x - 1], A[x, k.x])
        out.bound(x, 0, a.shape[1])
        out.update(0).vectorize(x, lanes)
        rest = out.update(1).split(x, x, xi, vectors * lanes).vectorize(xi, lanes).unroll(xi)
        rest.reorder(xi, k.x, x).parallel(x)
        return self.call(out, a.shape)

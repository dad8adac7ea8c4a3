"""TVM, scheduled by hand in its own way: without a schedule it does half a GFLOP/s."""

import os
from functools import partial

import tvm
from tvm import s_tir, te

_LANES = 16


class Peer:
    def __init__(self, threads):
        os.environ["TVM_NUM_THREADS"] = str(threads)
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        self.target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})

    def get(self, result):
        return result.numpy()

    def call(self, arrays, make, schedule):
        """`make` turns placeholders into a tensor `out`, whose block `schedule` gets with the schedule to write."""
        inputs = [te.placeholder(x.shape, name=f"x{i}") for i, x in enumerate(arrays)]
        out = make(*inputs)
        steps = s_tir.Schedule(te.create_prim_func([*inputs, out]))
        schedule(steps, steps.get_sblock("out"))
        function = tvm.compile(steps.mod, self.target)["main"]
        arguments = [*map(tvm.runtime.tensor, arrays), tvm.runtime.empty(tuple(map(int, out.shape)), "float32")]

        def run():
            function(*arguments)
            return arguments[-1]

        return run

    def matmul(self, a, b, a_transposed, b_transposed):
        *batch, inner, rows = a.shape if a_transposed else (*a.shape[:-2], a.shape[-1], a.shape[-2])
        columns = b.shape[-2 if b_transposed else -1]
        tile = next((t for t in (12, 8, 4) if rows % t == 0), None)
        if tile is None or columns % (2 * _LANES) or batch:
            return None  # loops with guards are no vectors
        k = te.reduce_axis((0, inner), name="k")

        def product(A, B):
            left = lambda i: A[k, i] if a_transposed else A[i, k]
            right = lambda j: B[j, k] if b_transposed else B[k, j]
            return te.compute((rows, columns), lambda i, j: te.sum(left(i) * right(j), axis=k), name="out")

        return self.call((a, b), product, partial(register_tiles, tile=tile, turned=b_transposed))

    def tutorial(self, a, b):
        k = te.reduce_axis((0, 1024), name="k")
        make = lambda A, B: te.compute((1024, 1024), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="out")

        def taught(steps, block):
            x, y, k = steps.get_loops(block)
            (xo, xi), (yo, yi), (ko, ki) = (steps.split(axis, [None, n]) for axis, n in ((x, 32), (y, 32), (k, 4)))
            steps.reorder(xo, yo, ko, xi, yi, ki)
            steps.vectorize(yi)
            steps.parallel(xo)
            steps.decompose_reduction(block, ko)  # te put the zeros there by itself

        return self.call((a, b), make, taught)

    def flat(self, f, *arrays):
        """An expression of elements."""

        def make(*inputs):
            pick = lambda i: [x[i[-len(x.shape) :]] for x in inputs]
            return te.compute(arrays[0].shape, lambda *i: f(*pick(i)), name="out")

        return self.call(arrays, make, spread)

    def fma_relu(self, a, b, c):
        return self.flat(lambda a, b, c: te.max(a * b + c, te.const(0.0, "float32")), a, b, c)

    def add(self, a, b):
        return self.flat(lambda a, b: a + b, a, b)

    def transpose(self, x):
        make = lambda x: te.compute(x.shape[::-1], lambda i, j: x[j, i], name="out")
        return self.call((x,), make, square_tiles)

    def sum(self, x, axis):
        return self.reduced(te.sum, x, axis)

    def max(self, x, axis):
        return self.reduced(te.max, x, axis)

    def reduced(self, reducer, x, axis):
        if axis == 1:
            return None  # its vectors need rfactor and a second pass over each row

        def make(x):
            k = te.reduce_axis((0, x.shape[0]), name="k")
            return te.compute((x.shape[1],), lambda j: reducer(x[k, j], axis=k), name="out")

        return self.call((x,), make, columns_in_vectors)


def spread(steps, block):
    """One loop over everything, in parallel and in vectors."""
    outer, inner = steps.split(steps.fuse(*steps.get_loops(block)), [None, _LANES])
    steps.vectorize(inner)
    steps.parallel(outer)


def columns_in_vectors(steps, block):
    j, k = steps.get_loops(block)
    outer, vectors, lanes = steps.split(j, [None, 8, _LANES])
    steps.reorder(outer, k, vectors, lanes)
    steps.vectorize(lanes)
    steps.unroll(vectors)
    steps.parallel(outer)
    steps.decompose_reduction(block, k)


def square_tiles(steps, block):
    i, j = steps.get_loops(block)
    (rows, row), (columns, column) = steps.split(i, [None, _LANES]), steps.split(j, [None, _LANES])
    steps.reorder(rows, columns, row, column)
    steps.vectorize(column)
    steps.parallel(rows)


def register_tiles(steps, block, tile, turned):
    """B in panels of two vectors, tiles of the product in registers while k runs."""
    width = 2 * _LANES
    panels = steps.cache_read(block, 1, "global")
    if turned:
        steps.transform_layout(block, ("read", 1), lambda j, k: (j // width, k, j % width))
    else:
        steps.transform_layout(block, ("read", 1), lambda k, j: (j // width, k, j % width))
    registers = steps.cache_write(block, 0, "local")
    i, j, k = steps.get_loops(block)
    (rows, row), (columns, column) = steps.split(i, [None, tile]), steps.split(j, [None, width])
    steps.reorder(columns, rows, k, row, column)
    steps.reverse_compute_at(registers, rows)
    vector, lanes = steps.split(column, [None, _LANES])
    steps.vectorize(lanes)
    steps.unroll(vector)
    steps.unroll(row)
    steps.parallel(columns)
    *_, row, column = steps.get_loops(registers)
    vector, lanes = steps.split(column, [None, _LANES])
    steps.vectorize(lanes)
    start = steps.decompose_reduction(block, k)
    *_, row, vector, lanes = steps.get_loops(start)
    steps.unroll(row)
    steps.unroll(vector)
    outer, inner = steps.get_loops(panels)
    if turned:
        steps.parallel(outer)
    else:
        high, low = steps.split(inner, [None, width])
        steps.reorder(high, outer, low)
        steps.vectorize(low)
        steps.parallel(high)

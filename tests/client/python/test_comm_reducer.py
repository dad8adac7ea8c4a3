"""Reducers of a program's own: what they become, and what is said of mistakes."""

import pytest
from expect import expect

import kiln
from kiln import _dtype, te
from kiln._encode import encode

A = te.placeholder((4, 6), name="A")
I = te.placeholder((4, 6), "int32", name="I")
K = te.reduce_axis((0, 6), name="k")


def argmax(**names):
    def better(x, y):
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])

    return te.comm_reducer(better, lambda *t: (te.const(-1, t[0]), te.min_value(t[1])), **names)


def product(combine=lambda a, b: a * b, identity=lambda t: te.const(1, t)):
    return te.comm_reducer(combine, identity, name="product")


def test_a_tuple_makes_as_many_tensors():
    T = te.compute((4,), lambda i: argmax(name="argmax")((I[i, K], A[i, K]), axis=K), name="T")
    assert [t.dtype for t in T] == ["int32", "float32"] and [x.name for x in T[0].op.reduce_axis] == ["k"]
    assert str(T[0].op.body[0]) == "argmax.v0[k](I[i, k], A[i, k])"
    kernel = encode([I, A, *T], None, "f")
    (reducer,) = kernel.definition.reducers
    assert list(reducer.types) == [_dtype.NUMBER["int32"], _dtype.NUMBER["float32"]]
    assert kernel.source_map.reducers[0].name == "argmax"
    assert list(kernel.source_map.reducers[0].parameters) == ["x0", "x1", "y0", "y1"]
    bodies = [kernel.definition.expressions[b].reduction for b in kernel.definition.stages[2].compute.bodies]
    assert [b.output for b in bodies] == [0, 1] and bodies[0].sources == bodies[1].sources


def test_a_reducer_stands_once_in_a_kernel():
    mul = product()
    B = te.compute((4,), lambda i: mul(A[i, K], axis=K) + mul(A[i, K] + 1, axis=K), name="B")
    assert len(encode([A, B], None, "f").definition.reducers) == 1


def test_two_values_are_combined_at_once():
    assert str(product()(A[0, 0], 2)) == "A[0, 0] * 2.0"
    assert str(product()(A[0, 0], A[0, 1], A[0, 2])) == "A[0, 0] * A[0, 1] * A[0, 2]"
    first, second = argmax()((I[0, 0], A[0, 0]), (I[0, 1], A[0, 1]))
    assert str(first) == "select(A[0, 0] >= A[0, 1], I[0, 0], I[0, 1])" and second.dtype == "float32"


def test_no_axis_leaves_the_value():
    assert str(product()(A[0, 0], axis=[])) == "A[0, 0]"


MISTAKES = [
    (lambda: product(lambda a, b: (a, b))(A[0, K], axis=K),
     "te.comm_reducer product combines 1 value, but fcombine returned 2"),
    (lambda: product(lambda a, b: None)(A[0, K], axis=K),
     "fcombine of te.comm_reducer product: it returned nothing; is a return missing?"),
    (lambda: product(lambda a, b: a > b)(A[0, K], axis=K),
     "fcombine of te.comm_reducer product is bool, but what it combines is float32; cast it"),
    (lambda: product(lambda a, b: a + A[0, 0])(A[0, K], axis=K),
     "fcombine of te.comm_reducer product reads A; it knows its two arguments only"),
    (lambda: product(lambda a, b: a + K)(A[0, K], axis=K),
     "fcombine of te.comm_reducer product uses axis k; it knows its two arguments only"),
    (lambda: product(identity=lambda t: te.const(0.5, "float64"))(I[0, K], axis=K),
     "fidentity of te.comm_reducer product is float64, but what it combines is int32; cast it"),
    (lambda: argmax(name="argmax")((I[0, K],), axis=K),
     "te.comm_reducer argmax got 1 value, of which its fcombine makes nothing: "
     "'Parameter' object is not subscriptable"),
    (lambda: argmax(name="argmax")((I[0, K], A[0, K]), axis=K, init=3),
     "te.comm_reducer argmax combines 2 values, but init= has 1"),
    (lambda: argmax(name="argmax")((I[0, 0], A[0, 0]), (1,)),
     "te.comm_reducer argmax got 2 values on the left and 1 value on the right; over an axis write axis= "
     "with a te.reduce_axis"),
    (lambda: product()((), axis=K), "te.comm_reducer product got no value to reduce"),
    (lambda: product()(A[0, K], axis=K, init=A[0, K]),
     "product: init= uses k, which is reduced over; a reduction starts from what is known outside of it"),
    (lambda: te.sum(I[0, K], axis=K, init=0.5), "the number 0.5 is no int32"),
    (lambda: te.sum(I[0, K], axis=K, init=A[0, 0]),
     "te.sum: init= is float32, but what it reduces is int32; cast it"),
    (lambda: te.comm_reducer(3, lambda t: 0, name="three"),
     "te.comm_reducer three: fcombine must be a function, but is 3"),
    (lambda: te.comm_reducer(lambda a, b: a, lambda t: 0, name=7),
     "te.comm_reducer: name= must be a string, but is 7"),
    (lambda: product()(A[0, 0], axis=te.compute((4,), lambda i: A[i, 0], name="B").op.axis[0]),
     "te.comm_reducer product: i is a data axis of B; make one with te.reduce_axis"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, message", MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_a_sentence(mistake, message):
    assert expect(kiln.InvalidArgument, message, mistake).line > 0

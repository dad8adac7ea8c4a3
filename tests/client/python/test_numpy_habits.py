"""Arrays of the daemon where numpy's users have an array, and functions called as Python's are."""

import asyncio
import copy
import inspect
import operator
import pickle
import time

import numpy as np
import pytest
from expect import expect
from test_client import add_one

import kiln
from kiln import te

pytestmark = pytest.mark.usefixtures("fake")
VALUES = np.array([[3.0, 1.0], [2.0, 5.0]], "float32")


def same(found, expected):
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", "add sub mul truediv floordiv mod pow matmul eq ne lt le gt ge".split())
def test_operators_are_numpys_between_arrays_and_numbers(name):
    x, apply = kiln.nd.array(VALUES), getattr(operator, name)
    other = VALUES.T + 1
    for left, right in ((x, kiln.nd.array(other)), (x, other)):
        same(apply(left, right), apply(VALUES, other))
    same(apply(other, x), apply(other, VALUES))
    if name != "matmul":
        same(apply(x, 2), apply(VALUES, 2))
        same(apply(2, x), apply(2, VALUES))


def test_functions_and_methods_are_numpys():
    x = kiln.nd.array(VALUES)
    same(np.exp(x), np.exp(VALUES))
    same(np.add.reduce(x, axis=1), np.add.reduce(VALUES, axis=1))
    same(np.concatenate([x, VALUES]), np.concatenate([VALUES, VALUES]))
    same(np.where(x > 2, x, 0), np.where(VALUES > 2, VALUES, 0))
    same(x.T, VALUES.T)
    same(x.reshape(-1), VALUES.reshape(-1))
    same(x.sum(axis=0), VALUES.sum(axis=0))
    same(x.mean(), VALUES.mean())
    same(x.astype("int32"), VALUES.astype("int32"))
    same(abs(-x), VALUES)
    assert x.item(1, 1) == 5 and max(x.max(axis=0)) == 5 and 5 in x and [list(row) for row in x] == VALUES.tolist()


def test_elements_are_read_and_written_by_index():
    x = kiln.nd.array(VALUES)
    same(x[1:], VALUES[1:])
    same(x[kiln.nd.array(np.array([1, 0]))], VALUES[[1, 0]])
    x[0] = kiln.nd.array(np.array([7.0, 8.0]))
    assert x.tolist() == [[7, 8], [2, 5]]


def test_results_go_back_into_an_array(fake):
    x = kiln.nd.array(VALUES)
    kept, place = x, x._id
    x += 1
    assert x is kept and x._id == place and fake.tensors[place].tolist() == (VALUES + 1).tolist()
    assert np.multiply(VALUES, 2, out=x) is x and x.tolist() == (VALUES * 2).tolist()
    total = kiln.nd.empty(2)
    assert x.sum(axis=0, out=total) is total and total.tolist() == [10, 12]
    assert np.sum(x, axis=1, out=total) is total and total.tolist() == [8, 14]


def test_an_array_of_one_element_is_a_number():
    one = kiln.nd.array(np.array(2))
    assert (float(one), int(one), bool(one), [5, 6, 7][one]) == (2.0, 2, True, 7)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(kiln.nd.array(VALUES))


def test_arrays_are_keys_by_what_they_are():
    x, y = kiln.nd.array(VALUES), kiln.nd.array(VALUES)
    assert len({x, y}) == 2 and {x: 1}[x] == 1


def test_a_dtype_is_numpys_and_prints_as_its_name():
    x = kiln.nd.empty(2, "int8")
    assert x.dtype == np.int8 == np.dtype("int8") and x.dtype == "int8" and f"{x.dtype}" == "int8"
    assert np.zeros(1, x.dtype).dtype == np.int8 and kiln.nd.empty(1, "bfloat16").dtype.itemsize == 2
    assert te.placeholder((1,), x.dtype).dtype == "int8"


def test_a_mask_is_not_dropped():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    expect(kiln.InvalidArgument,
           "nd.array is a masked array, whose mask a kernel does not know; fill it first, as in x.filled(0)",
           lambda: kiln.nd.array(masked))


def test_copies_are_arrays_of_their_own(fake):
    x = kiln.nd.array(VALUES)
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x)):
        assert type(other) is type(x) and other._id != x._id and other.device == x.device
        same(other.numpy(), VALUES)
    same(kiln.nd.ones((2, 1)).numpy(), np.ones((2, 1), "float32"))
    same(kiln.nd.full(2, 7, "int8").numpy(), np.full(2, 7, "int8"))


def test_a_notebook_shows_a_table():
    html = kiln.nd.array(VALUES)._repr_html_()
    assert html == (
        "<table><caption>float32[2, 2] on cpu(0)</caption>"
        "<tr><td>3</td><td>1</td></tr><tr><td>2</td><td>5</td></tr></table>"
    )
    wide = kiln.nd.array(np.arange(1000.0))._repr_html_()
    assert wide.count("<td>") == 11 and "<td>4</td><td>&#8230;</td><td>995</td>" in wide
    assert kiln.nd.array(np.array(2, "int8"))._repr_html_() == "<pre>NDArray(2, shape=(), dtype=int8, device=cpu(0))</pre>"


# Functions.


def test_a_function_tells_its_arguments():
    f = kiln.build(add_one(), name="plus")
    assert list(inspect.signature(f).parameters) == ["A", "B"] and inspect.signature(f).parameters["B"].default is None
    assert f.__doc__.startswith("Function plus(A: float32") and "returns an NDArray" in f.__doc__
    assert "plus" not in type(f).__doc__


def test_arguments_by_name():
    f = kiln.build(add_one())
    assert f(A=[1.0]).tolist() == [2]
    c = kiln.nd.empty(1)
    assert f(A=[3.0], B=c) is None and c.tolist() == [4]
    assert f([5.0], B=c) is None and c.tolist() == [6]


def test_outputs_as_out():
    f, two = kiln.build(add_one()), kiln.build(add_one(2))
    c, d = kiln.nd.empty(1), np.zeros(1, "float32")
    assert f([1.0], out=c) is c and c.tolist() == [2]
    assert f([1.0], out=d) is d and d.tolist() == [2]
    assert two([4.0], out=(c, d)) == (c, d) and c.tolist() == d.tolist() == [5]
    assert f([1.0], out=None).tolist() == [2]


@pytest.mark.parametrize("call, message", [
    (lambda f: f([1.0], A=[1.0]), "plus got A twice"),
    (lambda f: f(B=np.zeros(1, "float32")), "plus lacks its input A"),
    (lambda f: f(a=[1.0]), "plus has no argument or size a; its arguments are A, B"),
    (lambda f: f(A=[1.0], B=np.zeros(1, "float32"), out=np.zeros(1, "float32")), "plus got B twice"),
    (lambda f: f([1.0], out=(np.zeros(1), np.zeros(1))), "plus writes B, but out= holds 2 arrays"),
])  # fmt: skip
def test_names_that_do_not_fit(fake, call, message):
    f = kiln.build(add_one(), name="plus")
    expect(kiln.InvalidArgument, message, lambda: call(f))
    assert fake.counts["Run"] == 0


def test_a_call_ends_within_its_timeout(fake):
    f = kiln.build(add_one(), name="plus")
    assert f([1.0], timeout=30).tolist() == [2] and f([1.0], timeout=None).tolist() == [2]
    fake.hold = True
    message = "plus did not end within its timeout of 0.2 s"
    for call in (lambda: f([1.0], timeout=0.2), lambda: f.submit([1.0], timeout=0.2).result()):
        fake.cancelled.clear()
        fake.release.clear()
        begin = time.monotonic()
        expect(kiln.DeadlineExceeded, message, call)
        assert time.monotonic() - begin < 5 and fake.cancelled.wait(10)


@pytest.mark.parametrize("timeout", [0, -1, True, "2", float("nan")])
def test_a_timeout_is_a_time(fake, timeout):
    f = kiln.build(add_one(), name="plus")
    expect(kiln.InvalidArgument,
           f"plus: the timeout must be a number of seconds above 0, but is {timeout!r}",
           lambda: f([1.0], timeout=timeout))
    assert fake.counts["Run"] == 0


def test_a_function_is_pickled_as_what_it_computes(fake):
    f = pickle.loads(pickle.dumps(kiln.build(add_one(), name="plus")))
    assert f.entry_name == "plus" and f([1.0]).tolist() == [2] and fake.counts["Compile"] == 2


def test_a_call_is_awaited():
    f = kiln.build(add_one())

    async def calls():
        return await asyncio.gather(f.submit([1.0]), f.submit([2.0]))

    assert [result.tolist() for result in asyncio.run(calls())] == [[2], [3]]


def test_a_cancelled_task_cancels_its_call(fake):
    f = kiln.build(add_one())
    fake.hold = True

    async def waits(future):
        return await future

    async def cancelled():
        task = asyncio.ensure_future(waits(f.submit([1.0])))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert fake.cancelled.wait(10)

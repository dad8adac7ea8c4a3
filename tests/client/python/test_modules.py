"""What is built again from a file, from lowered text, or with sizes among its arguments."""

import hashlib

import numpy as np
import pytest
from expect import expect

import kiln as tvm
from kiln import te
from kiln.v1 import service_pb2 as wire

N = te.var("n")
A = te.placeholder((N,), name="A")
B = te.compute((N,), lambda i: A[i] + 1, name="B")
ONES = np.ones(4, "float32")


# Files.


def test_a_function_saved_is_the_same_when_loaded(daemon, tmp_path):
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], factor=8)[1])
    f = tvm.build(s, [A, B], "llvm", name="add_one")
    path = tmp_path / "add_one.so"
    f.export_library(path)
    g = tvm.load_module(str(path))
    assert g.entry_name == "add_one" and g(ONES).numpy().tolist() == [2, 2, 2, 2]
    assert g.source("lowered") == f.source("lowered") and g.timings["cache"] == "memory"
    assert g["add_one"] is g and g.get_function("add_one") is g
    assert tvm.runtime.load_module(path)(ONES).numpy().tolist() == [2, 2, 2, 2]


def test_the_way_of_the_first_tutorial(daemon):
    from kiln.contrib import cc, utils

    temp = utils.tempdir()
    f = tvm.build([A, B], name="myadd")
    f.save(temp.relpath("myadd.o"))
    cc.create_shared(temp.relpath("myadd.so"), [temp.relpath("myadd.o")])
    assert sorted(temp.listdir()) == ["myadd.o", "myadd.so"]
    loaded = tvm.module.load(temp.relpath("myadd.so"))
    out = tvm.nd.empty((4,))
    loaded(tvm.nd.array(ONES), out)
    assert out.asnumpy().tolist() == [2, 2, 2, 2]


def test_linking_copies_one_file(tmp_path):
    from kiln.contrib import cc

    out = tmp_path / "f.so"
    expect(tvm.InvalidArgument,
           "create_shared was given 2 files; save each function with export_library, and load each with "
           "kiln.load_module", lambda: cc.create_shared(out, ["a.o", "b.o"]))
    expect(tvm.InvalidArgument, f"cannot copy the module {tmp_path}/a.o: No such file or directory",
           lambda: cc.create_shared(out, tmp_path / "a.o"))


def test_a_file_that_is_none(daemon, tmp_path):
    path = tmp_path / "f.so"
    expect(tvm.InvalidArgument, f"cannot read the module {path}: No such file or directory",
           lambda: tvm.load_module(path))
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(64))
    expect(tvm.InvalidArgument, f"{path} is no module that export_library of Kiln saved",
           lambda: tvm.load_module(path))
    f = tvm.build([A, B])
    f.export_library(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"kiln module 1", b"kiln module 9"))
    expect(tvm.InvalidArgument,
           f"{path} was saved by another version of Kiln (kiln module 9); build it again",
           lambda: tvm.load_module(path))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(tvm.InvalidArgument) as error:
        tvm.load_module(path)
    assert error.value.reason == "MODULE_FILE"
    module = wire.SavedModule.FromString(whole)
    module.kernels[0].sha256 = bytes(32)
    path.write_bytes(module.SerializeToString())
    expect(tvm.InvalidArgument, f"the module {path} is damaged; build it again", lambda: tvm.load_module(path))
    module.kernels[0].request = b"\xff"
    module.kernels[0].sha256 = hashlib.sha256(b"\xff").digest()
    path.write_bytes(module.SerializeToString())
    expect(tvm.InvalidArgument, f"the module {path} is damaged; build it again", lambda: tvm.load_module(path))
    missing = tmp_path / "missing" / "f.so"
    expect(tvm.InvalidArgument, f"cannot write the module {missing}: No such file or directory",
           lambda: f.export_library(missing))
    assert not list(tmp_path.glob("*.part"))


# Lowered text.


def test_lowered_text_is_text_and_can_be_built(daemon):
    s = te.create_schedule(B.op)
    mod = tvm.lower(s, [A, B], name="add_one")
    assert isinstance(mod, str) and mod.startswith("fn add_one(A: float32[n]")
    assert mod["main"] is mod and mod.script() == mod.astext() == str(mod) and mod[0] == "f"
    f = tvm.build(mod, target="llvm")
    assert f.entry_name == "add_one" and f(ONES).numpy().tolist() == [2, 2, 2, 2]
    assert tvm.driver.build(mod, "llvm", name="other").entry_name == "other"
    expect(tvm.InvalidArgument, "add_one was lowered with its arguments; leave args out",
           lambda: tvm.build(mod, [A, B]))


def test_a_library_of_several(daemon, tmp_path):
    c = te.compute((N,), lambda i: A[i] * 5, name="C")
    library = tvm.build([tvm.lower([A, B], name="one"), tvm.lower([A, c], name="five")], target="llvm")
    library.export_library(tmp_path / "two.so")
    for each in (library, tvm.load_module(tmp_path / "two.so")):
        assert each["one"](ONES).numpy().tolist() == [2] * 4
        assert each.get_function("five")(ONES).numpy().tolist() == [5] * 4
        expect(tvm.NotFound, "there is no function six; there are one, five", lambda: each["six"])
    assert repr(library) == "Library of one, five"


# Sizes and numbers among the arguments.


def test_sizes_may_be_arguments(daemon):
    m, unused = te.var("m"), te.var("unused")
    a = te.placeholder((N, m), name="A")
    b = te.compute((N, m), lambda i, j: a[i, j] + m, name="B")
    f = tvm.build(te.create_schedule(b.op), [N, m, unused, a, b], name="f")
    x = np.zeros((2, 3), "float32")
    assert f(2, np.int32(3), 99, x).numpy().tolist() == [[3] * 3] * 2
    out = tvm.nd.empty((2, 3))
    f(2, 3, None or 7, tvm.nd.array(x), out)
    assert out.numpy().tolist() == [[3] * 3] * 2
    assert f.submit(2, 3, 0, x).result().shape == (2, 3)
    assert f.time_evaluator("f", tvm.cpu(0), number=1)(2, 3, 0, x).mean > 0
    expect(tvm.InvalidArgument, "f takes 5 arguments (n, m, unused, A, B), but got 3", lambda: f(2, 3, x))
    expect(tvm.InvalidArgument, "argument m of f is 1.5, but must be an integer", lambda: f(2, 1.5, 0, x))
    with pytest.raises(tvm.InvalidArgument, match="dimension 1"):
        f(2, 4, 0, x)


def test_sizes_among_the_arguments_survive_a_file(daemon, tmp_path):
    iota = te.compute((N,), lambda i: i.astype("float32"), name="iota")
    f = tvm.build([N, iota], name="f")
    f.export_library(tmp_path / "f.so")
    for each in (f, tvm.load_module(tmp_path / "f.so")):
        assert each(3).numpy().tolist() == [0, 1, 2]


def test_numbers_may_be_arguments(daemon):
    alpha = te.var("alpha", dtype="float32")
    scaled = te.compute((N,), lambda i: A[i] * alpha, name="S")
    f = tvm.build(te.create_schedule(scaled.op), [alpha, A, scaled], name="scale")
    assert f(2.5, ONES).numpy().tolist() == [2.5] * 4
    out = tvm.nd.empty((4,))
    f(np.float32(3), tvm.nd.array(ONES), out)
    assert out.numpy().tolist() == [3] * 4

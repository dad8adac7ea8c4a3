"""Compiled kernels in files: exported from a daemon, run in a process that has none."""

import os
import pathlib
import subprocess
import sys
import threading

import kernels
import ml_dtypes
import numpy as np
import pytest

import kiln
from kiln import te

N, M = te.var("n"), te.var("m")
A = te.placeholder((N, M), name="A")
I = te.placeholder((N,), "int64", name="I")
B = te.compute((N, M), lambda i, j: A[I[i], j] * 2, name="B")
K = te.reduce_axis((0, M), name="k")
S = te.compute((N,), lambda i: te.sum(A[i, K], axis=K), name="S")


@pytest.fixture
def scaled(service, tmp_path):
    path = tmp_path / "scaled.kart"
    kiln.build([A, I, B, S], name="scaled").export_artifact(path)
    return path


def test_it_computes_what_the_daemon_does(service, tmp_path):
    f = service.build(kernels.matmul(64, 48, 40), name="matmul")
    f.export_artifact(tmp_path / "matmul.kart")
    g = kiln.load_artifact(tmp_path / "matmul.kart")
    a = np.random.default_rng(1).random((64, 48), "float32")
    b = np.random.default_rng(2).random((48, 40), "float32")
    assert np.array_equal(g(a, b), f(a, b).numpy())
    assert g.entry_name == "matmul" and g.target == "llvm" and g.seconds > 0
    c = np.zeros((64, 40), "float32")
    assert g(a, b, c) is None and np.array_equal(c, f(a, b).numpy())
    assert repr(g).startswith("ArtifactFunction matmul(")


def test_a_process_without_a_daemon_runs_it(scaled):
    program = (
        "import sys, numpy as np, kiln\n"
        "f = kiln.load_artifact(sys.argv[1])\n"
        "b, s = f(np.arange(6, dtype='float32').reshape(2, 3), [1, 0])\n"
        "print(b.tolist(), s.tolist())\n"
    )
    runtime = pathlib.Path(os.environ["KILN_DAEMON"]).resolve().parent.parent / "lib/libkiln_runtime.so"
    environment = {"PATH": "/nowhere", "KILN_RUNTIME": str(runtime), "KILN_ADDRESS": "unix:/nowhere.sock",
                   "KILN_DAEMON": "/nowhere/kilnd"}
    done = subprocess.run([sys.executable, "-c", program, scaled], env=environment, capture_output=True, text=True)
    assert done.stdout == "[[6.0, 8.0, 10.0], [0.0, 2.0, 4.0]] [3.0, 12.0]\n", done.stderr


def test_arguments_may_be_strided_named_and_in_place(scaled):
    f = kiln.load_artifact(scaled, threads=1)
    a = np.arange(24, dtype="float32").reshape(4, 6)[::2, ::2]
    b, s = f(a, np.array([1, 0]))
    assert np.array_equal(b, a[[1, 0]] * 2) and np.array_equal(s, a.sum(axis=1))
    b, s = f(I=[0, 1], A=a)
    assert np.array_equal(b, a * 2)
    whole = np.zeros((2, 6), "float32")
    f(a, np.array([1, 0]), whole[:, ::2], np.zeros(2, "float32"))
    assert np.array_equal(whole[:, ::2], a[[1, 0]] * 2) and not whole[:, 1::2].any()


def test_threads_call_one_at_once(scaled):
    f = kiln.load_artifact(scaled)
    wrong = []

    def call(value):
        for _ in range(50):
            _, s = f(np.full((3, 100), value, "float32"), np.arange(3))
            wrong.extend([] if s.tolist() == [100.0 * value] * 3 else [s])

    threads = [threading.Thread(target=call, args=[value]) for value in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_sizes_and_small_floats(service, tmp_path):
    n = te.var("n")
    x = te.compute((n,), lambda i: i.astype("bfloat16") / 2, name="X")
    kiln.build([x], name="halves").export_artifact(tmp_path / "halves.kart")
    f = kiln.load_artifact(tmp_path / "halves.kart")
    got = f(n=5)
    assert got.dtype == ml_dtypes.bfloat16 and got.astype("float32").tolist() == [0, 0.5, 1, 1.5, 2]
    assert f(n=0).shape == (0,)
    with pytest.raises(kiln.InvalidArgument, match="^size n of halves is not given by any argument; pass it as a size"):
        f()


def refused(call, kind, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.message == sentence
    return caught.value


def test_wrong_arguments_are_told_in_its_names(scaled):
    f = kiln.load_artifact(scaled)
    a, i = np.ones((2, 3), "float32"), np.arange(2)
    refused(lambda: f(a.astype("float64"), i), kiln.InvalidArgument, "argument A of scaled is float64, but must be float32")
    refused(lambda: f(a, np.arange(3)), kiln.InvalidArgument,
            "argument I of scaled: dimension 0 is 3, but must be 2 (n, from dimension 0 of A)")
    refused(lambda: f(a), kiln.InvalidArgument, "scaled takes 4 arguments (A, I, B, S), but got 1")
    refused(lambda: f(a, i, a, [1.0, 2.0]), kiln.InvalidArgument,
            "argument S of scaled is written, so it must be a numpy array that may be")
    error = refused(lambda: f(a, i + 1), kiln.InvalidArgument,
                    "B of scaled reads index 2 of dimension 0 of A, but its extent there is 2")
    assert error.reason == "INDEX_OUT_OF_RANGE" and error.file == __file__


def test_outputs_lie_at_multiples_of_their_size(scaled):
    f = kiln.load_artifact(scaled)
    records = np.zeros(2, [("s", "float32"), ("flag", "int8")])
    refused(lambda: f(np.ones((2, 3), "float32"), np.arange(2), np.zeros((2, 3), "float32"), records["s"]),
            kiln.InvalidArgument,
            "argument S of scaled has elements that do not lie at multiples of their size; pass an array of your own")
    refused(lambda: f(np.ones((2, 3), "float32"), np.arange(2), n="two"), kiln.InvalidArgument,
            "size n of scaled is 'two', but must be an integer")


def test_wrong_files_are_told(scaled):
    def load():
        return kiln.load_artifact(scaled)

    whole = scaled.read_bytes()
    for at in (24, 60, len(whole) // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        scaled.write_bytes(damaged)
        refused(load, kiln.InvalidArgument,
                f"{scaled} is damaged: its checksum is wrong; write it again with kiln compile -o")
    scaled.write_bytes(b"KILNKART" + bytes(90))
    refused(load, kiln.InvalidArgument, f"{scaled} is an entry of a daemon's cache, which lacks the names of its kernel; write "
            "an artifact with kiln compile FILE.kiln -o NAME.kart")
    scaled.unlink()
    refused(load, kiln.NotFound, f"{scaled} cannot be read: No such file or directory")
    scaled.mkdir()
    refused(load, kiln.NotFound, f"{scaled} cannot be read: Is a directory")


def test_what_cannot_be_exported(service, tmp_path):
    f = kiln.build([A, I, B, S], target="interpreter", name="scaled")
    refused(lambda: f.export_artifact(tmp_path / "f.kart"), kiln.Unsupported,
            "scaled is built for the interpreter, which runs loops inside of the service; build it for llvm or cuda to export "
            "it")
    g = kiln.build([A, I, B, S], name="scaled")
    refused(lambda: g.export_artifact(tmp_path / "none" / "f.kart"), kiln.InvalidArgument,
            f"cannot write the artifact {tmp_path}/none/f.kart: No such file or directory")


def test_without_the_library_it_says_where_it_looked(scaled):
    program = "import kiln, sys\ntry:\n  kiln.load_artifact(sys.argv[1])\nexcept kiln.Unavailable as e:\n  print(e.message)"
    for environment, looked_at in (
        ({"KILN_RUNTIME": "/nowhere/x.so"}, "$KILN_RUNTIME (/nowhere/x.so)"),
        ({}, "$KILN_RUNTIME (not set), the Python package kiln-daemon, beside $KILN_DAEMON, beside kiln and kilnd on PATH"),
    ):
        done = subprocess.run([sys.executable, "-c", program, scaled], env={"PATH": "/nowhere", **environment},
                              capture_output=True, text=True)
        assert done.stdout == (
            f"there is no libkiln_runtime.so, which runs compiled kernels: looked at {looked_at}; install Kiln, or name the "
            "library in KILN_RUNTIME\n"
        ), done.stderr


def test_a_library_that_does_not_fit_is_refused(scaled, tmp_path, monkeypatch):
    from kiln._service import runtime_library

    def load():
        runtime_library.library.cache_clear()
        kiln.load_artifact(scaled)

    path = runtime_library.library()._name
    with monkeypatch.context() as patch:
        patch.setattr(runtime_library, "VERSION", "9.9.9")
        refused(load, kiln.Unavailable,
                f"the library {path} has version {kiln.__version__}, but this client 9.9.9: install the same of both, or name "
                "another library in KILN_RUNTIME")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        refused(load, kiln.Unavailable, "compiled kernels run on Linux alone: build this one with kiln.build")
    other = tmp_path / "other.so"
    other.write_bytes(b"no library")
    with monkeypatch.context() as patch:
        patch.setenv("KILN_RUNTIME", str(other))
        refused(load, kiln.Unavailable, f"the library {other} cannot be loaded: {other}: file too short")
    load()

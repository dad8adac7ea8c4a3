"""An NVRTC that crashes, that does not end, or that another toolkit has: one sentence, and nothing else is lost."""

import os
import pathlib
import shutil

import numpy as np
import pytest

import kiln
from kiln import te

FAKES = pathlib.Path(os.environ.get("KILN_DAEMON") or shutil.which("kilnd") or "kilnd").resolve().parent.parent / "tests" / "cuda" / "fake"


def _product(size):
    a, b = (te.placeholder((size, size), name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    return [a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def _compiled(daemon, size):
    return kiln.compile(_product(size), target="cuda", arch="sm_90", name="product", connection=daemon.connection)


def _with_nvrtc(start, folder, script, **options):
    """A daemon whose NVRTC does what the script says: the imitation, which runs it in the place of a compiler."""
    nvrtc = FAKES / "libfake_libnvrtc.so"
    if not nvrtc.exists():
        pytest.skip(f"{nvrtc} was not built")
    program = folder / "compiler"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return start(environment={"KILN_NVRTC": str(nvrtc), "FAKE_NVRTC_COMPILER": str(program), "KILN_SANDBOX": "off",
                              "KILN_TILEIRAS": str(folder / "none")}, **options)


def _expect_nothing_lost(daemon, array):
    """A tensor that was there before, and kernels for the CPU."""
    a = te.placeholder((4,), name="A")
    add = kiln.build([a, te.compute((4,), lambda i: a[i] + 1, name="B")], connection=daemon.connection)
    np.testing.assert_array_equal(add(array).numpy(), [1, 2, 3, 4])


def test_one_that_crashes_is_a_sentence(start, folder):
    daemon = _with_nvrtc(start, folder, "kill -SEGV $PPID")
    array = daemon.connection.array(np.arange(4, dtype="float32"))
    for size in (16, 24):
        with pytest.raises(kiln.Internal) as caught:
            _compiled(daemon, size)
        assert caught.value.message == (
            "the compiler died while it compiled product; this is a bug in kiln, or in NVRTC 13.0 in "
            f"{FAKES / 'libfake_libnvrtc.so'}: KILN_NVRTC names another one to kilnd")
    _expect_nothing_lost(daemon, array)


def test_one_that_does_not_end_is_a_sentence(start, folder):
    daemon = _with_nvrtc(start, folder, "exec sleep 30", limits={"compile-seconds": 3})
    array = daemon.connection.array(np.arange(4, dtype="float32"))
    with pytest.raises(kiln.ResourceExhausted) as caught:
        _compiled(daemon, 16)
    assert caught.value.message == "product took longer than 3 s to compile"
    _expect_nothing_lost(daemon, array)


# What no loader takes, and what is another library, are passed over for the next one that is found.
@pytest.mark.parametrize("other", ["text", "library"])
def test_one_of_another_toolkit_is_passed_over(start, folder, other):
    (folder / "toolkit" / "lib64").mkdir(parents=True)
    library = folder / "toolkit" / "lib64" / "libnvrtc.so.13"
    if other == "text":
        library.write_text("INPUT(libnvrtc.so.13.0.88)\n")
    elif (FAKES / "libfake_libcuda.so").exists():
        shutil.copy(FAKES / "libfake_libcuda.so", library)
    else:
        pytest.skip(f"{FAKES} has no library to take for it")
    daemon = start(environment={"CUDA_HOME": str(folder / "toolkit")})
    [nvrtc] = [part for part in daemon.connection.describe()["components"] if part["name"] == "nvrtc"]
    if not nvrtc["ok"]:
        pytest.skip(f"no NVRTC here: {nvrtc['message']}")
    assert str(folder) not in nvrtc["message"]
    [row] = _compiled(daemon, 64).report()["kernels"]
    assert row["registers"] > 0

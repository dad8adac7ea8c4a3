"""The two wheels in an environment of their own, as a new user installs them: no build folder, no PATH, no settings."""

import os
import re
import signal
import subprocess
import tempfile
import time
import zipfile

import pytest
from deployed import ROOT, new_venv, run, version

FIRST = """
import numpy as np
import kiln as tvm
from kiln import te
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
print(tvm.build([A, B])(np.arange(3, dtype="float32")).numpy(), tvm.describe()["pid"])
"""


def needs_other_libraries(program):
    text = run("readelf", "-d", program)
    names = set(re.findall(r"Shared library: \[(.*?)\]", text))
    return names - {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


@pytest.fixture(scope="module")
def wheels(programs, tmp_path_factory):
    """The two files: the client's and the programs'."""
    foreign = needs_other_libraries(programs / "libexec" / "kiln-worker")
    if foreign:
        pytest.skip(f"the programs in {programs} need {len(foreign)} libraries; the release preset's are wheels' alone")
    out = tmp_path_factory.mktemp("wheels")
    run(ROOT / "deploy" / "build-wheels.sh", "--programs", programs, out)
    return sorted(out.glob("kiln-*.whl")) + sorted(out.glob("kiln_daemon-*.whl"))


@pytest.fixture(scope="module")
def python(wheels, tmp_path_factory):
    """The python of an environment with both."""
    python = new_venv(tmp_path_factory.mktemp("venv"))
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels)
    return python


@pytest.fixture
def user(clean_environment):
    """The environment of a user with a home of their own, where the private daemon lives."""
    with tempfile.TemporaryDirectory(prefix="kiln-") as home:
        yield {**clean_environment, "HOME": home, "XDG_RUNTIME_DIR": home}


def end(pid):
    os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_the_wheels_have_the_trees_version_and_say_what_they_need(wheels):
    client, daemon = (path.name for path in wheels)
    assert client == f"kiln-{version()}-py3-none-any.whl"
    assert re.fullmatch(rf"kiln_daemon-{re.escape(version())}-py3-none-manylinux_2_3[0-6]_x86_64\.whl", daemon)
    assert wheels[1].stat().st_size < 60e6


def test_the_programs_are_stripped_and_executable(wheels, tmp_path):
    with zipfile.ZipFile(wheels[1]) as archive:
        programs = {info.filename: info for info in archive.infolist() if "/bin/" in info.filename
                    or "/libexec/" in info.filename or "/lib/" in info.filename}
        assert sorted(programs) == ["kiln_daemon/bin/kiln", "kiln_daemon/bin/kilnd", "kiln_daemon/lib/libkiln_runtime.so",
                                    "kiln_daemon/libexec/kiln-worker"]
        assert all(info.external_attr >> 16 & 0o111 == 0o111 for info in programs.values())
        for name in programs:
            sections = run("readelf", "--sections", "--wide", archive.extract(name, tmp_path))
            assert ".dynsym" in sections
            assert not re.search(r"\.(debug_\w+|symtab)\s", sections)


def test_the_first_kernel(python, user):
    """Without the environment's bin on PATH: the daemon is found in the package."""
    values, pid = run(python, "-c", FIRST, env=user, timeout=120).rsplit(maxsplit=1)
    try:
        assert values == "[1. 2. 3.]"
        package = python.parent.parent.resolve()
        assert str(package) in os.readlink(f"/proc/{pid}/exe")
    finally:
        end(int(pid))


COMPILED = """
import os, tempfile
import kiln
from kiln import te
A = te.placeholder((te.var("n"),), name="A")
f = kiln.build([A, te.compute(A.shape, lambda i: A[i] + 1, name="B")])
path = os.path.join(tempfile.mkdtemp(), "f.kart")
f.export_artifact(path)
pid = kiln.describe()["pid"]
print(kiln.load_artifact(path)([0.0, 1.0, 2.0]), pid)
"""


def test_a_compiled_kernel_runs_in_python_itself(python, user):
    """By the library in the package, without a toolchain."""
    values, pid = run(python, "-c", COMPILED, env=user, timeout=120).rsplit(maxsplit=1)
    end(int(pid))
    assert values == "[1. 2. 3.]"


def test_the_first_kernel_in_an_active_environment(python, user):
    user = {**user, "PATH": f"{python.parent}:{user['PATH']}", "VIRTUAL_ENV": str(python.parent.parent)}
    values, pid = run("python", "-c", FIRST, env=user, timeout=120).rsplit(maxsplit=1)
    try:
        assert values == "[1. 2. 3.]"
        shown = run("kiln", "doctor", env=user, timeout=60)
        assert re.search(rf"^ok +service +version {re.escape(version())} at .*, process {pid}$", shown, re.M)
    finally:
        end(int(pid))


def test_both_commands_are_the_programs_themselves(python, user):
    for name in ("kiln", "kilnd"):
        process = subprocess.run([python.parent / name, "--help"], env=user, capture_output=True, text=True)
        assert process.returncode == 0 and "kiln" in process.stdout
    assert run(python.parent / "kilnd", "--version", env=user) == f"kilnd {version()}\n"
    wrong = subprocess.run([python.parent / "kiln", "rum"], env=user, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr) == (2, "error: there is no command rum; did you mean run\n")


def test_programs_with_libraries_of_others_are_refused(programs, tmp_path):
    """What is not everywhere must not be in a wheel that says it is."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "libexec").mkdir()
    for name in ("bin/kiln", "bin/kilnd", "lib/libkiln_runtime.so", "libexec/kiln-worker"):
        # The shell's own editor library or another one: any program that is linked with more than the C library.
        (tmp_path / name).symlink_to("/usr/bin/git")
    done = subprocess.run([ROOT / "deploy" / "build-wheels.sh", "--programs", tmp_path, tmp_path / "out"],
                          capture_output=True, text=True)
    assert done.returncode != 0
    assert re.search(r"kiln-daemon: bin/kiln needs \S.*, which is not everywhere; build it with KILN_STATIC=ON",
                     done.stdout + done.stderr)

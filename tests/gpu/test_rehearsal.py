"""What a session with a GPU runs, run whole on the fake driver: no minute of a GPU is spent on a mistake of the script."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    daemon = pathlib.Path(os.environ["KILN_DAEMON"])
    out = tmp_path_factory.mktemp("gpu") / "report.json"
    done = subprocess.run(
        [ROOT / "tests" / "gpu" / "run.sh", "--fake", "--out", out, "--build", daemon.parent.parent,
         "--python", sys.executable, "--cases", "so"],
        capture_output=True, text=True, timeout=500)
    assert out.exists(), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())


def test_without_a_gpu_it_says_what_is_missing(tmp_path):
    daemon = pathlib.Path(os.environ["KILN_DAEMON"])
    out = tmp_path / "report.json"
    done = subprocess.run(
        [ROOT / "tests" / "gpu" / "run.sh", "--out", out, "--build", daemon.parent.parent, "--python", sys.executable],
        capture_output=True, text=True, timeout=100, env={**os.environ, "KILN_LIBCUDA": str(tmp_path / "libcuda.so.1")})
    assert done.returncode == 1
    assert done.stderr.startswith("nothing was run: ") and "Traceback" not in done.stderr, done.stderr
    assert "--fake --out FILE rehearses here" in done.stderr
    assert not out.exists()


def test_nothing_is_wrong(report):
    for part, counts in report["counts"].items():
        assert set(counts) <= {"right", "refused"}, (part, counts)


def test_programs_give_what_numpy_gives(report):
    assert report["programs"]["cumsum 10 x 1000"]["state"] == "right"
    assert report["programs"]["cumsum 10 x 1024"]["state"] == "right"


def test_each_device_computes(report):
    assert set(report["resident"]) == {"cuda:0", "cuda:1", "from one to the next"}


def test_trouble_is_told_in_sentences(report):
    sentences = {name: row.get("sentence") for name, row in report["trouble"].items()}
    assert sentences["out_of_range"] == "Y of the kernel reads index 99 of dimension 0 of X, but its extent there is 8"
    assert sentences["too_many_threads"].startswith("a block of threads along x would have 1025 entries")


def test_times_are_there(report):
    assert report["times"]["call"]["median"] > 0
    assert report["times"]["copy"]["bytes_a_second"] > 0
    assert report["times"]["matmul"][0]["seconds"] > 0


def test_it_says_what_it_ran_on(report):
    assert report["facts"]["fake"] is True
    assert any("cuda:1" in device for device in report["facts"]["devices"])

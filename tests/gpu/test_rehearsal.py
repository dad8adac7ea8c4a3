"""What a session with a GPU runs, run whole on the fake driver: no minute of a GPU is spent on a mistake of the script."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import timed_kernels

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


def test_without_a_gpu_times_can_be_predicted_and_are_not_measured(tmp_path):
    daemon = pathlib.Path(os.environ["KILN_DAEMON"])
    out = tmp_path / "report.json"
    done = subprocess.run([ROOT / "tests" / "gpu" / "run.sh", "--predict", "--out", out, "--build", daemon.parent.parent,
                           "--python", sys.executable, "--cases", "4096x4096x4096"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("times not measured; what they are predicted to be is in ")
    report = json.loads(out.read_text())
    assert report["times"] == "times not measured"
    assert list(report["predicted"]) == ["sm_90", "sm_80", "sm_89", "sm_100"]
    for arch, groups in report["predicted"].items():
        assert list(groups) == list(timed_kernels.groups())
        for group in ("float32", "bfloat16", "float16"):
            assert groups[group]["4096x4096x4096"]["bound_by"], (arch, groups)
    # 2 * 4096^3 operations are 2.2 ms at the 62 TFLOP/s of an H100's lanes, and 0.14 at the 989 of its tensor cores.
    h100 = report["predicted"]["sm_90"]
    assert 2.2e-3 < h100["float32"]["4096x4096x4096"]["predicted"] < 3e-3
    assert 0.137e-3 < h100["bfloat16"]["4096x4096x4096"]["predicted"] < 0.4e-3


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
    kernels = {f"{group}: {name}": row for group, rows in report["times"]["kernels"].items() for name, row in rows.items()}
    assert len(kernels) == 9
    for name, row in kernels.items():
        assert row["seconds"] > 0 and row["predicted"] > 0 and row["bound_by"], (name, row)
    assert report["times"]["means"]["memory"]["predicted"] > 0


def test_it_says_what_it_ran_on(report):
    assert report["facts"]["fake"] is True
    assert any("cuda:1" in device for device in report["facts"]["devices"])


def test_what_a_kernel_may_have_is_measured_beside_what_is_taken(tmp_path):
    daemon = pathlib.Path(os.environ["KILN_DAEMON"])
    out = tmp_path / "choices.json"
    done = subprocess.run([ROOT / "tests" / "gpu" / "run.sh", "--fake", "--choices", "--out", out, "--build", daemon.parent.parent,
                           "--python", sys.executable, "--cases", "40x64x72"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())["choices"]
    [[name, row]] = found["kernels"].items()
    assert name == "float32, 40x64x72"
    schedules = row["schedules"]
    assert 2 <= len(schedules) <= 6 and len({each["name"] for each in schedules}) == len(schedules)
    assert all(each["seconds"] > 0 and each["predicted"] > 0 for each in schedules)
    assert row["regret"] == schedules[0]["seconds"] / min(each["seconds"] for each in schedules)
    assert found["regret"] == {"kernels": 1, "median": row["regret"], "most": row["regret"]}

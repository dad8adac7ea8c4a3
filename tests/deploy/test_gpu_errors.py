"""What a host for GPU kernels lacks: `kiln doctor`, the command line and Python say it in the same sentence, with the fix.

Drivers are played by those of tests/cuda/fake.
"""

import json
import subprocess
import sys

import pytest
import transcript

NOBODY = "libcuda-of-nobody.so"
COMPILING = "; to compile without one, name an arch such as sm_90"
# part of doctor's list, environment of the daemon ({} is the folder of the fakes), what it says
LACKS = {
    "no driver": ("libcuda", {"KILN_LIBCUDA": NOBODY},
                  f"this host has no NVIDIA driver ({NOBODY} was not found); install the driver, or run where there is a GPU"
                  + COMPILING),
    "container without --gpus": (
        "libcuda", {"KILN_LIBCUDA": NOBODY, "NVIDIA_VISIBLE_DEVICES": "all"},
        f"this container sees no NVIDIA driver ({NOBODY} was not found); start it with --gpus all, on a host with a GPU and "
        f"NVIDIA's container toolkit{COMPILING}"),
    "driver of CUDA 11": (
        "libcuda", {"KILN_LIBCUDA": "{}/libfake_libcuda.so", "FAKE_CUDA_VERSION": "11040"},
        "the NVIDIA driver (libcuda.so.1) is too old: it is one of CUDA 11.4; install a driver of CUDA 12 or later"),
    "driver without a function": (
        "libcuda", {"KILN_LIBCUDA": "{}/libfake_old_libcuda.so"},
        "the NVIDIA driver (libcuda.so.1) is too old: it has no cuGraphInstantiateWithFlags; install a driver of CUDA 12 or "
        "later"),
    "driver without a GPU": (
        "libcuda", {"KILN_LIBCUDA": "{}/libfake_libcuda.so", "FAKE_CUDA_DEVICES": "0"},
        "this host has an NVIDIA driver but no usable GPU (no CUDA-capable device is detected); check nvidia-smi, and in a "
        "container that the GPUs were passed in (--gpus all)"),
    "NVRTC named wrongly": (
        "nvrtc", {"KILN_LIBCUDA": "{}/libfake_libcuda.so", "KILN_NVRTC": "/nowhere/libnvrtc.so"},
        "NVRTC could not be opened from /nowhere/libnvrtc.so, which KILN_NVRTC names; correct it, or unset it to have NVRTC "
        "searched"),
    "no NVRTC": (
        "nvrtc", {"KILN_LIBCUDA": "{}/libfake_libcuda.so"},
        "NVRTC (libnvrtc.so.13), which compiles CUDA kernels, was found neither by the system, nor in /usr/local/cuda, nor among "
        "Python's packages; install the CUDA toolkit 13.0, or run pip install nvidia-cuda-nvrtc==13.0.88, or let KILN_NVRTC "
        "name the file"),
}
PYTHON = """
import sys, kiln
from kiln import te
A = te.placeholder((4,), name="A")
try:
    kiln.build([A, te.compute((4,), lambda i: A[i] + 1.0, name="B")], target="cuda")([1.0, 2.0, 3.0, 4.0])
except kiln.Error as error:
    print(type(error).__name__, error.message)
"""


@pytest.fixture
def service(programs, tmp_path):
    """service(environment) starts a daemon with it, and gives its address."""
    fakes, running = programs / "tests" / "cuda" / "fake", []
    if not (fakes / "libfake_libcuda.so").exists():
        pytest.skip(f"{programs} has no drivers to play with")

    def start(environment):
        settings = {name: value.format(fakes) for name, value in environment.items()}
        running.append(subprocess.Popen(
            [programs / "bin" / "kilnd", "--listen", "127.0.0.1:0", "--cache-dir", tmp_path / "cache"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **settings}))
        return running[-1].stdout.readline().split()[-1]

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


@pytest.mark.parametrize("name", LACKS)
def test_what_is_lacking_is_said_with_the_way_out(programs, service, name):
    part, environment, sentence = LACKS[name]
    address = service(environment)
    kiln = programs / "bin" / "kiln"
    doctor = subprocess.run([kiln, "doctor", "--json", "--address", address], capture_output=True, text=True, timeout=60)
    parts = {each["name"]: each for each in json.loads(doctor.stdout)["components"]}
    if name == "no NVRTC" and parts["nvrtc"]["ok"]:
        pytest.skip(f"this machine has {parts['nvrtc']['message']}")
    assert (parts[part]["ok"], parts[part]["message"]) == (False, sentence)
    assert doctor.returncode == 0  # the CPU works

    done = subprocess.run([sys.executable, "-c", PYTHON], capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "KILN_ADDRESS": address})
    assert (done.stdout, done.stderr) == (f"Unavailable {sentence}\n", "")
    done = subprocess.run([kiln, "run", transcript.CUMSUM, "--in", f"X={transcript.X}", "--device", "cuda", "--address", address],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, f"error: {sentence}")
    transcript.note(name, "kiln run cumsum.kiln --in X=x_10x1024.npy --device cuda", done.stderr)

"""A daemon on this host's GPU, or on the fake driver, and what the host is."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import kiln


# Beside cubins that were compiled elsewhere: the arch that they are for.
PLANNED_FOR = "planned-for"


class CompilesOnly(Exception):
    """There is no GPU here: what was asked for is compiled for one elsewhere."""


class Compiling:
    """Stands for a connection where kernels are compiled for an architecture, and none is run."""

    def __init__(self, connection, arch):
        self.connection, self.arch = connection, arch

    def build(self, *args, target, **options):
        if target == "cuda":
            self.connection.compile(*args, target=target, arch=self.arch, **options)
        raise CompilesOnly

    def describe(self):
        return {"devices": [{"name": "cuda:0"}]}


class Host:
    """kilnd of a build, with a cache of its own, which begins as `cache`; `checker` is a command before it."""

    def __init__(self, build, fake, checker=(), settings=(), cache=None):
        self.folder = tempfile.TemporaryDirectory(prefix="kiln-gpu-")
        folder = pathlib.Path(self.folder.name)
        environment = {**os.environ, **dict(settings)}
        if cache:
            shutil.copytree(cache, folder / "cache", dirs_exist_ok=True, ignore=shutil.ignore_patterns(PLANNED_FOR))
            # Its cubins are of an architecture, whatever GPU of it is here.
            planned = pathlib.Path(cache) / PLANNED_FOR
            if planned.exists():
                environment.setdefault("KILN_GPU", planned.read_text())
        if fake:
            libraries = pathlib.Path(build) / "tests" / "cuda" / "fake"
            environment.update(KILN_LIBCUDA=str(libraries / "libfake_libcuda.so"),
                               KILN_NVRTC=str(libraries / "libfake_libnvrtc.so"), FAKE_CUDA_DEVICES="2",
                               KILN_SANDBOX="off")  # the imitation of NVRTC starts a compiler
        self.log = open(folder / "log", "wb")
        command = [*checker, str(pathlib.Path(build) / "bin" / "kilnd"), "--listen", f"unix:{folder}/s",
                   "--cache-dir", f"{folder}/cache"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit(f"kilnd did not start: {line}{(folder / 'log').read_text()}")
        self.connection = kiln.connect(line.removeprefix("listening on ").strip())

    def close(self, keep=None):
        """`keep` is a folder for what the cache has then."""
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.stdout.close()
        self.log.close()
        if keep:
            shutil.copytree(pathlib.Path(self.folder.name) / "cache", keep, dirs_exist_ok=True)
        self.folder.cleanup()
        return self.process.returncode


def without_gpu(connection):
    """Why there is no GPU to run on, in a sentence; None where there is one."""
    described = connection.describe()
    if any(device["name"].startswith("cuda") for device in described["devices"]):
        return None
    absent = [part["message"] for part in described["components"] if part["name"] == "libcuda" and not part["ok"]]
    return absent[0] if absent else "the daemon has no GPU; kiln doctor says why"


def facts(connection, fake):
    """What was run on: devices and parts as the daemon tells them, and the commit."""
    described = connection.describe()
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    if (root / "commit").exists():  # a kit
        commit = (root / "commit").read_text().strip()
    else:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=root).stdout.strip()
    smi = shutil.which("nvidia-smi")
    driver = subprocess.run([smi, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.strip() if smi and not fake else ""
    return {"fake": fake, "commit": commit, "devices": [str(d) for d in described["devices"]],
            "parts": [str(part) for part in described.get("components", [])], "nvidia_smi": driver}

"""`kiln doctor` looks at every part of an installation; here at a disk that is full."""

import contextlib
import json
import subprocess

import pytest
import transcript
from deployed import run


def doctor(programs, address):
    done = subprocess.run([programs / "bin" / "kiln", "doctor", "--json", "--address", address], capture_output=True,
                          text=True, timeout=60)
    return done.returncode, {part["name"]: part for part in json.loads(done.stdout)["components"]}


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of one MiB."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.fixture
def start(programs, tmp_path_factory):
    running = []

    def run(cache):
        running.append(subprocess.Popen([programs / "bin" / "kilnd", "--listen", "127.0.0.1:0", "--cache-dir", cache],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        return running[-1].stdout.readline().split()[-1]

    yield run
    for process in running:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


def test_every_part_is_looked_at(programs, start, tmp_path):
    code, parts = doctor(programs, start(tmp_path))
    assert code == 0
    assert set(parts) >= {"client", "address", "service", "cpu", "libcuda", "cuda device", "cache", "disk"}
    assert parts["disk"]["ok"] and parts["disk"]["message"].endswith(" MiB are free for compiled kernels")
    assert parts["cache"]["ok"] and str(tmp_path) in parts["cache"]["message"]


def test_a_full_disk_is_said_with_the_way_out(programs, small_disk, start):
    address = start(small_disk)
    code, parts = doctor(programs, address)
    assert code == 0  # kernels are compiled and run all the same
    assert not parts["disk"]["ok"]
    assert parts["disk"]["message"].endswith(
        f" MiB are free in {small_disk}, too few to keep compiled kernels: make room, or name another folder with "
        "--cache-dir")
    shown = run(programs / "bin" / "kiln", "doctor", "--address", address)
    transcript.note("a full disk", "kiln doctor | grep disk", next(line for line in shown.splitlines(True) if " disk " in line))


def test_a_disk_without_room_for_credentials(programs, small_disk, tmp_path_factory):
    with open(small_disk / "all", "wb") as rest, contextlib.suppress(OSError):
        while True:
            rest.write(bytes(1 << 16))
            rest.flush()
    done = subprocess.run([programs / "bin" / "kilnd", "--listen", "127.0.0.1:0", "--cache-dir", tmp_path_factory.mktemp("cache"),
                           "--credentials", small_disk], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == (f"kilnd: {small_disk}/token cannot be written: No space left on device; name another folder with "
                           "--credentials\n")
    transcript.note("a full disk at the first start", f"kilnd --credentials {small_disk}", done.stderr)

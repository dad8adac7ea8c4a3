"""The private daemon: one for each user and version, started when it is first needed.

Any client of the same version finds it by its socket. It ends by itself some time after its last
session ended.
"""

import contextlib
import fcntl
import importlib.util
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import tempfile
import time

from ._error import Unavailable

VERSION = "0.1.0"
_IDLE_SECONDS = 600
_START_SECONDS = 30
_LONGEST_PATH = 107  # of a unix socket
_started = []  # so that nobody complains about a child that outlives its Popen


def private_address():
    """The address of the private daemon, which runs when this returns."""
    folder = _folder()
    path = folder / f"{VERSION}.sock"
    if not _answers(path):
        with _locked(folder / f"{VERSION}.lock"):
            if not _answers(path):
                _start(path, folder / f"{VERSION}.log")
    return f"unix:{path}"


def _folder():
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime) and len(runtime) < _LONGEST_PATH - 30:
        folder = pathlib.Path(runtime, "kiln")
    else:
        folder = pathlib.Path(tempfile.gettempdir(), f"kiln-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise Unavailable(
            f"{folder} must be a folder that belongs to this user alone, for the private daemon's "
            "socket; remove it or set XDG_RUNTIME_DIR",
            "PRIVATE_FOLDER",
        )
    return folder


@contextlib.contextmanager
def _locked(path):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _answers(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _start(path, log):
    daemon = find_daemon()
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    command = [daemon, "--listen", f"unix:{path}", "--idle-exit", str(_IDLE_SECONDS)]
    with open(log, "w") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"cannot start {daemon}: {error.strerror}", "DAEMON_START") from None
    _started.append(process)
    limit = time.monotonic() + _START_SECONDS
    while not _answers(path):
        if process.poll() is not None:
            raise Unavailable(
                f"{daemon} ended at its start with status {process.returncode}; {log} says why",
                "DAEMON_START",
                _last_lines(log),
            )
        if time.monotonic() > limit:
            raise Unavailable(
                f"{daemon} does not answer after {_START_SECONDS} s; {log} may say why", "DAEMON_START"
            )
        time.sleep(0.01)


def _last_lines(log):
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace").splitlines()[-3:]
    return []


def find_daemon():
    """The path of kilnd."""
    named = os.environ.get("KILN_DAEMON")
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return named
        raise Unavailable(f"KILN_DAEMON is {named}, which is no program", "NO_DAEMON")
    command = shutil.which("kiln")
    candidates = [pathlib.Path(os.path.realpath(command)).parent / "kilnd"] if command else []
    package = importlib.util.find_spec("kiln_daemon")
    if package is not None and package.origin:
        candidates.append(pathlib.Path(package.origin).parent / "bin" / "kilnd")
    on_path = shutil.which("kilnd")
    if on_path:
        candidates.append(pathlib.Path(on_path))
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return str(candidate)
    raise Unavailable(
        "found no kilnd: KILN_DAEMON is not set, none stands beside a kiln command on PATH, the "
        "Python package kiln-daemon is not installed, and PATH has no kilnd; set KILN_DAEMON to the "
        "program (build/release/bin/kilnd of a source tree), or KILN_ADDRESS to a daemon that runs",
        "NO_DAEMON",
    )

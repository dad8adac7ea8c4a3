"""The private daemon: one for each user and version, started when it is first needed.

Any client of the same version finds it by its socket. It ends by itself some time after its last
session ended.
"""

import contextlib
import importlib.util
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

from .._base.error import Unavailable
from .._version import VERSION

_IDLE_SECONDS = 600
_START_SECONDS = 30
_LONGEST_PATH = 107  # of a unix socket
_started = []  # so that nobody complains about a child that outlives its Popen


def private_address():
    """The address of the private daemon, which runs when this returns."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(
            "kilnd runs on Linux alone, so there is no private daemon here: name a running service in "
            'KILN_ADDRESS, or with kiln.connect("HOST:PORT")',
            "NO_DAEMON",
        )
    folder = _runtime_folder()
    _require_own(folder)
    path = folder / f"{VERSION}.sock"
    if not _answers(path):
        with _locked(folder / f"{VERSION}.lock"):
            if not _answers(path):  # another process may have been first
                _start(path, folder / f"{VERSION}.log")
    return f"unix:{path}"


def _runtime_folder():
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):
        return pathlib.Path(runtime).absolute() / "kiln"
    return pathlib.Path(tempfile.gettempdir()) / f"kiln-{os.geteuid()}"


def _cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache:
        return pathlib.Path(cache).absolute() / "kiln"
    home = os.environ.get("HOME")
    return pathlib.Path(home) / ".cache" / "kiln" if home else _runtime_folder() / "cache"


def _require_own(folder):
    """Makes the folder, and refuses one that another user could have put there."""
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
    except OSError as error:
        raise Unavailable(
            f"the folder {folder} for the private daemon cannot be made: {error.strerror}",
            "RUNTIME_FOLDER",
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Unavailable(
            f"the folder {folder} for the private daemon must belong to you alone (mode 0700): remove "
            "it, or set XDG_RUNTIME_DIR",
            "RUNTIME_FOLDER",
        )


@contextlib.contextmanager
def _locked(path):
    import fcntl  # not on Windows, where there is no private daemon

    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _answers(path):
    if len(str(path)) > _LONGEST_PATH:
        raise Unavailable(
            f"the path {path} is too long for a unix socket: set XDG_RUNTIME_DIR to a shorter folder",
            "SOCKET_PATH",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _start(path, log):
    daemon = os.path.abspath(find_daemon())
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    command = [daemon, "--listen", f"unix:{path}", "--idle-exit", str(_IDLE_SECONDS)]
    command += ["--cache-dir", str(_cache_folder())]
    with open(log, "w") as output:
        try:
            # It outlives this program: a session of its own, and no hold on this folder.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            raise Unavailable(
                f"the daemon {daemon} cannot be started: {error.strerror}", "DAEMON_START"
            ) from None
    _started.append(process)
    limit = time.monotonic() + _START_SECONDS
    while not _answers(path):
        if process.poll() is not None:
            raise Unavailable(
                f"the daemon {daemon} ended at once: {_last_line(log)} (log: {log})", "DAEMON_START"
            )
        if time.monotonic() > limit:
            raise Unavailable(
                f"the daemon {daemon} does not listen on {path} after {_START_SECONDS} s (log: {log})",
                "DAEMON_START",
            )
        time.sleep(0.005)


def _last_line(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line]
    return lines[-1] if lines else ""


def find_daemon():
    """The path of kilnd."""
    named = os.environ.get("KILN_DAEMON")
    looked_at = [f"$KILN_DAEMON ({named or 'not set'})"]
    # Whoever names a daemon does not want another one.
    candidates = [pathlib.Path(named)] if named else _usual_places(looked_at)
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Unavailable(
        f"no daemon to start: looked at {', '.join(looked_at)}; install Kiln, name the daemon in "
        "KILN_DAEMON, or name a running service in KILN_ADDRESS",
        "NO_DAEMON",
    )


def _usual_places(looked_at):
    """Where kilnd may stand, in order; notes each place as it is looked at."""
    command = shutil.which("kiln")
    if command:
        beside = pathlib.Path(os.path.realpath(command)).parent / "kilnd"
        looked_at.append(str(beside))
        yield beside
    looked_at.append("the Python package kiln-daemon")
    package = importlib.util.find_spec("kiln_daemon")
    if package is not None and package.origin:
        yield pathlib.Path(package.origin).parent / "bin" / "kilnd"
    looked_at.append("PATH")
    on_path = shutil.which("kilnd")
    if on_path:
        yield pathlib.Path(on_path)

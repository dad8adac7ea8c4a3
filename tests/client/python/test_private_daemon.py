"""The daemon that clients start by themselves. It is a program of the test's own here."""

import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import pytest
from expect import expect

import kiln
from kiln._service import connection as connections, daemon as daemons

FOLDER = pathlib.Path(__file__).parent

KILND = f"""#!{sys.executable}
import os, sys, time
sys.path.insert(0, {str(FOLDER)!r})
with open(os.environ["STARTS"], "a") as starts:
    print(os.getpid(), *sys.argv[1:], file=starts)
if "BROKEN" in os.environ:
    sys.exit("no room for a cache")
from fake_daemon import FakeDaemon
daemon = FakeDaemon(sys.argv[sys.argv.index("--listen") + 1])
print("listening on", daemon.address, flush=True)
time.sleep(60)
"""


@pytest.fixture
def place(short_folder, monkeypatch):
    """A folder with a kilnd, XDG_RUNTIME_DIR in it, and nothing else to be found."""
    program = short_folder / "bin" / "kilnd"
    program.parent.mkdir()
    program.write_text(KILND)
    program.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(short_folder / "cache"))
    monkeypatch.setenv("STARTS", str(short_folder / "starts"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("KILN_DAEMON", raising=False)
    monkeypatch.delenv("KILN_ADDRESS", raising=False)
    monkeypatch.setattr(connections, "_default", None)
    yield short_folder
    if connections._default is not None:
        connections._default.close()
    for line in starts(short_folder):
        try:
            os.kill(int(line.split()[0]), signal.SIGKILL)
        except ProcessLookupError:
            pass


def starts(place):
    file = place / "starts"
    return file.read_text().splitlines() if file.exists() else []


def test_it_is_started_on_demand_and_shared(place, monkeypatch):
    monkeypatch.setenv("KILN_DAEMON", str(place / "bin" / "kilnd"))
    socket = place / "kiln" / f"{kiln.__version__}.sock"
    assert kiln.nd.array([1.0]).numpy().tolist() == [1]
    assert kiln.describe()["address"] == f"unix:{socket}"
    assert kiln.connect().address == f"unix:{socket}"
    (line,) = starts(place)
    assert line.split()[1:] == ["--listen", f"unix:{socket}", "--idle-exit", "600",
                                "--cache-dir", str(place / "cache" / "kiln")]
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_many_at_once_start_one(place, monkeypatch):
    monkeypatch.setenv("KILN_DAEMON", str(place / "bin" / "kilnd"))
    program = "import kiln; print(kiln.describe()['version'])"
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
               for _ in range(4)]
    assert [process.communicate(timeout=60)[0] for process in running] == [f"{kiln.__version__}\n"] * 4
    assert len(starts(place)) == 1


def test_a_daemon_that_died_is_started_again(place, monkeypatch):
    monkeypatch.setenv("KILN_DAEMON", str(place / "bin" / "kilnd"))
    kiln.describe()
    os.kill(int(starts(place)[0].split()[0]), signal.SIGKILL)
    daemons._started[-1].wait(5)
    assert kiln.describe()["version"] == kiln.__version__
    assert len(starts(place)) == 2


@pytest.mark.parametrize("where", ["beside", "on_path"])
def test_it_is_found(place, monkeypatch, where):
    if where == "beside":
        (place / "link").mkdir()
        (place / "bin" / "kiln").write_text("#!/bin/sh\n")
        (place / "bin" / "kiln").chmod(0o755)
        (place / "link" / "kiln").symlink_to(place / "bin" / "kiln")
        monkeypatch.setenv("PATH", str(place / "link"))
    else:
        monkeypatch.setenv("PATH", str(place / "bin"))
    assert pathlib.Path(daemons.find_daemon()).resolve() == (place / "bin" / "kilnd").resolve()


def test_it_is_found_in_the_python_package(place, monkeypatch):
    package = place / "site" / "kiln_daemon"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "bin" / "kilnd").symlink_to(place / "bin" / "kilnd")
    monkeypatch.syspath_prepend(str(place / "site"))
    assert daemons.find_daemon() == str(package / "bin" / "kilnd")


def test_none_found_says_what_was_looked_at(place):
    error = expect(kiln.Unavailable,
                   "no daemon to start: looked at $KILN_DAEMON (not set), the Python package kiln-daemon, "
                   "PATH; install Kiln, name the daemon in KILN_DAEMON, or name a running service in "
                   "KILN_ADDRESS", kiln.describe)
    assert error.reason == "NO_DAEMON"


def test_a_wrong_name_is_not_replaced_by_another_daemon(place, monkeypatch):
    monkeypatch.setenv("PATH", str(place / "bin"))
    monkeypatch.setenv("KILN_DAEMON", "/no/kilnd")
    expect(kiln.Unavailable,
           "no daemon to start: looked at $KILN_DAEMON (/no/kilnd); install Kiln, name the daemon in "
           "KILN_DAEMON, or name a running service in KILN_ADDRESS", kiln.describe)


def test_one_that_fails_says_its_last_line(place, monkeypatch):
    program = place / "bin" / "kilnd"
    monkeypatch.setenv("KILN_DAEMON", str(program))
    monkeypatch.setenv("BROKEN", "1")
    begin = time.monotonic()
    expect(kiln.Unavailable,
           f"the daemon {program} ended at once: no room for a cache (log: {place}/kiln/{kiln.__version__}.log)",
           kiln.describe)
    assert time.monotonic() - begin < 10


def test_a_folder_of_others_is_refused(place):
    (place / "kiln").mkdir(mode=0o755)
    (place / "kiln").chmod(0o755)
    expect(kiln.Unavailable,
           f"the folder {place}/kiln for the private daemon must belong to you alone (mode 0700): remove "
           "it, or set XDG_RUNTIME_DIR", kiln.describe)


def test_without_a_runtime_folder_it_lives_under_the_temporary_one(monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert daemons._runtime_folder().name == f"kiln-{os.geteuid()}"


def test_an_address_in_the_environment_is_used(place, fake, monkeypatch):
    monkeypatch.setenv("KILN_ADDRESS", fake.address)
    with kiln.connect(default=False) as connection:
        assert connection.address == fake.address
    assert not starts(place)


def test_a_folder_that_cannot_be_made(place, monkeypatch):
    monkeypatch.setattr(daemons, "_runtime_folder", lambda: place / "missing" / "kiln")
    error = expect(kiln.Unavailable,
                   f"the folder {place}/missing/kiln for the private daemon cannot be made: No such file or "
                   "directory", kiln.describe)
    assert error.reason == "RUNTIME_FOLDER"


def test_a_folder_whose_path_is_too_long_for_a_socket(place, monkeypatch):
    folder = place / ("x" * 100)
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    error = expect(kiln.Unavailable,
                   f"the path {folder}/kiln/{kiln.__version__}.sock is too long for a unix socket: set XDG_RUNTIME_DIR to "
                   "a shorter folder", kiln.describe)
    assert error.reason == "SOCKET_PATH"


def test_one_that_cannot_be_started(place, monkeypatch):
    program = place / "bin" / "kilnd"
    program.write_text("#!/nowhere/python\n")
    monkeypatch.setenv("KILN_DAEMON", str(program))
    expect(kiln.Unavailable, f"the daemon {program} cannot be started: No such file or directory",
           kiln.describe)


def test_one_that_does_not_listen(place, monkeypatch):
    program = place / "bin" / "kilnd"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    monkeypatch.setenv("KILN_DAEMON", str(program))
    monkeypatch.setattr(daemons, "_START_SECONDS", 0.2)
    expect(kiln.Unavailable,
           f"the daemon {program} does not listen on {place}/kiln/{kiln.__version__}.sock after 0.2 s (log: "
           f"{place}/kiln/{kiln.__version__}.log)", kiln.describe)
    daemons._started[-1].kill()

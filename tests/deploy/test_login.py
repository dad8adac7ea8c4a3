"""The first use of a service elsewhere: it makes token and certificate, its log has a line, the line is run once, and
every client of the user reaches it; also from another network namespace, as from another machine."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest
from deployed import permitted, run

PYTHON = """
import kiln
n = kiln.te.var("n")
A = kiln.te.placeholder((n,), name="A")
f = kiln.build([A, kiln.te.compute((n,), lambda i: A[i] + 1, name="B")])
print(kiln.describe()["address"], f([1.0, 2.0]).numpy().tolist())
"""


@pytest.fixture
def user(short_folder, programs, clean_environment):
    """Somebody with the command line and a home of their own."""
    return {**clean_environment, "HOME": str(short_folder / "home"), "XDG_RUNTIME_DIR": str(short_folder),
            "PATH": f"{programs / 'bin'}:{clean_environment['PATH']}"}


class Service:
    def __init__(self, programs, folder, listen, *flags, inside=()):
        self.folder, self.log = folder, folder / "kilnd.log"
        command = [*inside, programs / "bin" / "kilnd", "--listen", listen, "--cache-dir", folder / "cache",
                   "--credentials", folder / "credentials", *flags]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), self.log.read_text()
        self.address = line.split()[-1]

    def logged(self, pattern):
        limit = time.monotonic() + 20
        while True:
            found = re.search(f"clients run once{pattern}\n", self.log.read_text())
            if found:
                return found[1]
            assert time.monotonic() < limit, self.log.read_text()
            time.sleep(0.05)

    def login_line(self):
        return self.logged(": (kiln login .*)").split()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=20) == 0
        self.process.stdout.close()


@pytest.fixture
def service(programs, short_folder):
    service = Service(programs, short_folder, "127.0.0.1:0")
    yield service
    service.stop()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_makes_what_is_secret_and_the_next_keeps_it(programs, short_folder, service):
    line = service.login_line()
    made = {path.name: path.read_text() for path in (short_folder / "credentials").iterdir()}
    assert made.pop("login").split() == line
    assert sorted(made) == ["cert.pem", "key.pem", "token"]
    assert mode(short_folder / "credentials") == 0o700
    assert all(mode(path) == 0o600 for path in (short_folder / "credentials").iterdir())
    again = Service(programs, short_folder, "127.0.0.1:0", "--advertise", "gpu7.example:443")
    file = again.logged(" the line in (.*)")
    again.stop()
    now = {path.name: path.read_text() for path in (short_folder / "credentials").iterdir()}
    assert file == f"{short_folder}/credentials/login"
    assert now.pop("login").split()[2] == "gpu7.example:443"
    assert now == made
    assert made["token"].strip() not in again.log.read_text()


def test_the_logged_line_is_all_that_clients_need(service, user, short_folder):
    shown = run(*service.login_line(), env=user)
    profile = short_folder / "home/.config/kiln/default.json"
    assert re.fullmatch(rf"logged in to {service.address}, version \S+, with cpu:0\nclients of this user reach it without "
                        rf"an address \({profile}\); kiln logout forgets it\n", shown)
    assert mode(profile) == 0o600 and mode(profile.with_suffix(".pem")) == 0o600 and mode(profile.parent) == 0o700
    assert run("kiln", "version", env=user).endswith(f" at {service.address}\n")
    assert run(sys.executable, "-c", PYTHON, env=user) == f"{service.address} [2.0, 3.0]\n"
    assert re.search(rf"^ok +address +{service.address}, from profile default$", run("kiln", "doctor", env=user), re.M)
    assert run("kiln", "logout", env=user) == "logged out: the profile default is forgotten\n"
    assert os.listdir(profile.parent) == []


def test_python_logs_in_where_there_is_no_command_line(service, user):
    run(sys.executable, "-m", "kiln", *service.login_line()[1:], "--profile", "far", env=user)
    far = {**user, "KILN_PROFILE": "far"}
    assert run(sys.executable, "-c", PYTHON, env=far) == f"{service.address} [2.0, 3.0]\n"
    assert run("kiln", "version", "--json", env=far) == run("kiln", "version", "--json", "--address", service.address,
                                                              env=far)
    assert "ok       service" in run(sys.executable, "-m", "kiln", "doctor", env=far)
    run(sys.executable, "-m", "kiln", "logout", "--profile", "far", env=user)


def test_an_address_that_is_named_wins_and_an_empty_profile_is_none(service, user):
    run(*service.login_line(), env=user)
    for environment, flags in (({}, ["--address", "127.0.0.1:1"]), ({"KILN_ADDRESS": "127.0.0.1:1"}, [])):
        done = subprocess.run(["kiln", "devices", *flags], env={**user, **environment}, capture_output=True, text=True)
        assert done.stderr == "error: nothing listens at 127.0.0.1:1: start kilnd there, or correct the address\n"
    assert json.loads(run("kiln", "version", "--json", env={**user, "KILN_PROFILE": ""}))["daemon"] is None


def refused(command, user, code=1):
    done = subprocess.run(command, env=user, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and done.stdout == ""
    return done.stderr.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize("client", ["kiln", "python"])
def test_what_is_wrong_with_a_login(service, user, short_folder, client):
    def login(*flags):
        words = ["kiln"] if client == "kiln" else [sys.executable, "-m", "kiln"]
        return refused([*words, "login", service.address, *flags], user)

    _, _, _, _, token, _, fingerprint = service.login_line()
    wrong = "0" * 64
    assert login("--token", token, "--fingerprint", wrong) == (
        f"the certificate of {service.address} has the fingerprint {fingerprint}, not {wrong}: copy the login line from "
        "the service's log; if it is the same, another machine answers in its place")
    assert login("--token", "other", "--fingerprint", fingerprint).startswith("this daemon asks for a token")
    # What did not work is not kept.
    assert not list((short_folder / "home").rglob("*.json")) and not list((short_folder / "home").rglob("*.pem"))


def test_a_service_without_tls_has_no_fingerprint(user):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def answer():
            with listener.accept()[0] as connection:
                connection.recv(1024)
                connection.sendall(b"this is no TLS")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = refused(["kiln", "login", address, "--fingerprint", "0" * 64], user, code=3)
        thread.join()
    assert said == (f"the service at {address} does not speak TLS, so it has no fingerprint: leave --fingerprint out, or "
                    "correct the address")


@pytest.mark.parametrize("client", ["kiln", "python"])
def test_what_is_wrong_with_a_logout(user, client):
    words = ["kiln"] if client == "kiln" else [sys.executable, "-m", "kiln"]
    assert refused([*words, "logout"], user) == "there is no profile default: nobody logged in under it"
    assert refused([*words, "logout", "--profile", "a/b"], user) == (
        "a/b is no name of a profile: use letters and digits")


def test_a_damaged_profile_says_what_to_do(user, short_folder):
    profile = short_folder / "home/.config/kiln/default.json"
    profile.parent.mkdir(parents=True)
    profile.write_text("{")
    message = (f"the profile {profile} is damaged: run the kiln login line of the service again, or delete the file")
    assert refused(["kiln", "devices"], user) == message
    done = subprocess.run([sys.executable, "-c", "import kiln; kiln.describe()"], env=user, capture_output=True, text=True)
    assert f"kiln.InvalidArgument: {message}\n" in done.stderr


@pytest.fixture
def two_machines():
    """Two network namespaces that see each other: the commands to run in them, and the address of the first."""
    names, made = [f"kiln{os.getpid() % 10000}{end}" for end in "ab"], []
    try:
        for name in names:
            permitted("ip", "netns", "add", name)
            made.append(name)
        permitted("ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for number, name in enumerate(names, 1):
            permitted("ip", "link", "set", name, "netns", name)
            inside = ["ip", "netns", "exec", name]
            permitted(*inside, "ip", "addr", "add", f"10.117.0.{number}/24", "dev", name)
            permitted(*inside, "ip", "link", "set", name, "up")
            permitted(*inside, "ip", "link", "set", "lo", "up")
        yield [["ip", "netns", "exec", name] for name in names], "10.117.0.1"
    except FileNotFoundError:
        pytest.skip("there is no ip (iproute2)")
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name])


def test_from_another_machine(programs, short_folder, user, two_machines):
    (there, here), host = two_machines
    service = Service(programs, short_folder, "0.0.0.0:7411", "--advertise", f"{host}:7411", inside=there)
    try:
        line = service.login_line()
        assert line[:3] == ["kiln", "login", f"{host}:7411"]
        run(*here, *line, env=user)
        assert run(*here, sys.executable, "-c", PYTHON, env=user) == f"{host}:7411 [2.0, 3.0]\n"
        assert "cpu:0" in run(*here, "kiln", "devices", env=user)
    finally:
        service.stop()

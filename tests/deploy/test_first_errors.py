"""What a newcomer does wrong between installation and the first kernel: one sentence each, with the way out, from
Python, the command line and (by the same library as the command line) C++. Nothing of gRPC's own is printed."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading

import pytest
import transcript

import kiln
from kiln._service import compatible

FAKES = pathlib.Path(__file__).resolve().parents[1] / "client" / "python"


def make_certificate(folder, name, names, *more):
    """A certificate that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}", *(more or ("-days", "2"))],
                   check=True, capture_output=True)
    return certificate, key


PYTHON = """
import sys, kiln
address, token, ca = sys.argv[1:]
try:
    kiln.connect(address or None, token=token or None, ca=ca or None)
except kiln.Error as error:
    print(type(error).__name__, error.reason, error.message)
"""


def says(programs, address, reason, message, *, kind="Unavailable", token="", ca=""):
    """Both clients, in processes of their own: what they print is the sentence and nothing else."""
    title = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split()[0].removeprefix("test_").replace("_", " ")
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", PYTHON, address, token, str(ca)], capture_output=True, text=True,
                          timeout=60, env=environment)
    assert (done.stdout, done.stderr) == (f"{kind} {reason} {message}\n", "")
    flags = [*(["--token", token] if token else []), *(["--ca", ca] if ca else [])]
    done = subprocess.run([programs / "bin" / "kiln", "devices", "--address", address, *flags], capture_output=True,
                          text=True, timeout=60, env=environment)
    assert done.stderr == f"error: {message}\n"
    assert done.returncode == {"Unavailable": 3}.get(kind, 1)
    transcript.note(title, " ".join(map(str, ["kiln devices --address", address, *flags])), done.stderr)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_port_on_which_nobody_listens(programs):
    address = f"127.0.0.1:{free_port()}"
    says(programs, address, "UNREACHABLE", f"nothing listens at {address}: start kilnd there, or correct the address")


def test_no_daemon_is_found(programs, tmp_path, short_folder):
    """The command line alone, as of the Debian package kiln without kiln-daemon; and Python without kiln-daemon."""
    shutil.copy(programs / "bin" / "kiln", tmp_path)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_RUNTIME_DIR": str(short_folder)}
    sentence = (r"no daemon to start: looked at \$KILN_DAEMON \(not set\), .*PATH; install Kiln, name the daemon in KILN_DAEMON, "
                r"or name a running service in KILN_ADDRESS\n")
    for command in ([sys.executable, "-c", PYTHON, "", "", ""], [tmp_path / "kiln", "devices"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        printed = done.stderr + done.stdout
        assert re.fullmatch(f"(error: |Unavailable NO_DAEMON ){sentence}", printed), printed
    transcript.note("no daemon is found", "kiln devices", printed)


def test_a_socket_that_is_not_there(programs, short_folder):
    address = f"unix:{short_folder}/none.sock"
    says(programs, address, "UNREACHABLE",
         f"nothing listens at {address}, there is no such socket: start kilnd there, or correct the address")


def test_a_socket_of_a_daemon_that_is_gone(programs, short_folder):
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(f"{short_folder}/gone.sock")
    address = f"unix:{short_folder}/gone.sock"
    says(programs, address, "UNREACHABLE", f"nothing listens at {address}: start kilnd there, or correct the address")


def test_a_host_that_has_no_such_name(programs):
    says(programs, "nosuchhost.invalid:7411", "UNREACHABLE",
         "no host is called nosuchhost.invalid: correct the address nosuchhost.invalid:7411")


def test_something_else_listens(programs):
    """A server of HTTP/1.1, as there is one on many ports."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                client.recv(1000)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=serve, daemon=True).start()
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    try:
        says(programs, address, "UNREACHABLE", f"what listens at {address} is no Kiln service: correct the address")
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def test_the_certificate_was_forgotten(programs, start, short_folder):
    certificate, key = make_certificate(short_folder, "here", "IP:127.0.0.1")
    address = start("--tls-cert", certificate, "--tls-key", key)
    says(programs, address, "TLS", f"the service at {address} wants TLS: name its certificate (ca=, --ca), or run the "
         "kiln login line that it logged")


def test_the_service_has_no_certificate(programs, start, short_folder):
    certificate, _ = make_certificate(short_folder, "here", "IP:127.0.0.1")
    address = start()
    says(programs, address, "TLS", f"the service at {address} does not speak TLS: leave the certificate out (ca=, "
         "--ca), or start kilnd with --tls-cert and --tls-key", ca=certificate)


def test_the_certificate_is_another_services(programs, start, short_folder):
    certificate, key = make_certificate(short_folder, "here", "IP:127.0.0.1")
    other, _ = make_certificate(short_folder, "other", "IP:127.0.0.1")
    address = start("--tls-cert", certificate, "--tls-key", key)
    says(programs, address, "CERTIFICATE", f"the certificate of {address} is none that {other} vouches for: take the "
         "service's own, from the kiln login line that it logged", ca=other)


def test_the_certificate_is_for_another_name(programs, start, short_folder):
    certificate, key = make_certificate(short_folder, "there", "DNS:there.example,IP:192.0.2.7")
    address = start("--tls-cert", certificate, "--tls-key", key)
    says(programs, address, "CERTIFICATE", f"the certificate of {address} is for there.example, 192.0.2.7, not for "
         "127.0.0.1: use such a name, or make a certificate for this one on the service", ca=certificate)


def test_the_token_is_wrong_or_missing(programs, start, short_folder):
    (short_folder / "token").write_text("secret\n")
    (short_folder / "token").chmod(0o600)
    address = start("--token-file", short_folder / "token")
    for token in ("other", ""):
        says(programs, address, "TOKEN", "this daemon asks for a token, and the one given is missing or wrong",
             kind="Unauthenticated", token=token)


@pytest.fixture
def fake_version(monkeypatch):
    """fake_version(text) is the address of a daemon of that version."""
    monkeypatch.syspath_prepend(str(FAKES))
    from fake_daemon import FakeDaemon

    running = []

    def run(version):
        class Other(FakeDaemon):
            def _describe(self, request, context):
                reply = super()._describe(request, context)
                reply.version = version
                return reply

        running.append(Other("127.0.0.1:0"))
        return running[-1].address

    yield run
    for daemon in running:
        daemon.stop()


def shifted(minor, major=0):
    numbers = [int(part) for part in kiln.__version__.split(".")]
    return f"{numbers[0] + major}.{numbers[1] + minor}.7"


@pytest.mark.parametrize("other", [shifted(2), shifted(0, major=1)], ids=["too_new", "another_major"])
def test_a_daemon_of_a_version_too_far_away(programs, fake_version, other):
    address = fake_version(other)
    says(programs, address, "VERSION", f"the daemon at {address} has version {other} and this client "
         f"{kiln.__version__}, but they may be one minor version apart at most: install {other} here, or "
         f"{kiln.__version__} there", kind="Unsupported")


def test_a_daemon_that_is_too_old(start, monkeypatch):
    """The daemon is real: only what the client says of itself is changed."""
    monkeypatch.setattr(compatible, "VERSION", shifted(2))
    address = start()
    with pytest.raises(kiln.Unsupported) as caught:
        kiln.connect(address, default=False)
    assert caught.value.message == (
        f"the daemon at {address} has version {kiln.__version__} and this client {shifted(2)}, but they may be one "
        f"minor version apart at most: install {kiln.__version__} here, or {shifted(2)} there")


@pytest.mark.parametrize("other", [shifted(1), shifted(0), "1234abc"])
def test_one_minor_version_apart_they_work_together(programs, fake_version, other):
    address = fake_version(other)
    with kiln.connect(address, default=False) as connection:
        assert connection.array([1.0, 2.0]).numpy().tolist() == [1, 2]
    done = subprocess.run([programs / "bin" / "kiln", "version", "--json", "--address", address], capture_output=True,
                          text=True, timeout=60)
    assert json.loads(done.stdout) == {"client": kiln.__version__, "daemon": other}


def test_a_newer_client_works_with_this_daemon(start, monkeypatch):
    monkeypatch.setattr(compatible, "VERSION", shifted(1))
    with kiln.connect(start(), default=False) as connection:
        n = kiln.te.var("n")
        A = kiln.te.placeholder((n,), name="A")
        f = connection.build([A, kiln.te.compute((n,), lambda i: A[i] * 2, name="B")])
        assert f([1.0, 2.0]).numpy().tolist() == [2, 4]

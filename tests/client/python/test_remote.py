"""Daemons of other kinds than the one the other tests share: over TCP, and the private one."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import grpc
import numpy as np
import pytest
from expect import expect
from tree import ROOT

import kiln


def check(address, **options):
    with kiln.connect(address, default=False, **options) as connection:
        return connection.array([1.0, 2.0]).numpy().tolist()


def test_a_token_is_asked_for_and_given(start, short_folder):
    token = short_folder / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    address = start("--token-file", token)
    assert check(address, token="secret") == [1, 2]
    message = "this daemon asks for a token, and the one given is missing or wrong"
    for wrong in ("other", None):
        error = expect(kiln.Unauthenticated, message, lambda: check(address, token=wrong))
        assert isinstance(error, PermissionError)


def test_token_and_certificate_may_stand_in_the_environment(start, short_folder, monkeypatch):
    token = short_folder / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    address = start("--token-file", token)
    monkeypatch.setenv("KILN_TOKEN", "secret")
    assert check(address) == [1, 2]
    monkeypatch.setenv("KILN_TOKEN", "wrong")
    assert check(address, token="secret") == [1, 2]
    monkeypatch.setenv("KILN_CA", "/nowhere/ca.pem")
    expect(kiln.InvalidArgument, "cannot read the certificate /nowhere/ca.pem: No such file or directory",
           lambda: check(address))



def test_tls(start, short_folder):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = short_folder / "key.pem", short_folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                    "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    address = start("--tls-cert", certificate, "--tls-key", key)
    assert check(address, ca=str(certificate)) == [1, 2]
    with pytest.raises(kiln.Unavailable) as caught:
        check(address)
    assert caught.value.reason == "TLS"


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _certificates(folder, *clients):
    """An authority in ca.pem, the daemon's certificate, and one of each client."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", "-x509", *curve, "-days", 2, "-subj", "/CN=authority", "-keyout", folder / "ca.key",
             "-out", folder / "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("kilnd", *clients):
        _openssl("req", *curve, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        _openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
                 "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out", folder / f"{name}.pem")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_clients_are_known_by_their_certificates(start, short_folder):
    _certificates(short_folder, "alice", "bob")
    ca = short_folder / "ca.pem"
    address = start("--tls-cert", short_folder / "kilnd.pem", "--tls-key", short_folder / "kilnd.key",
                    "--tls-client-ca", ca)

    def connect(name):
        return kiln.connect(address, ca=ca, cert=short_folder / f"{name}.pem", key=short_folder / f"{name}.key",
                            default=False)

    with connect("alice") as alice, connect("bob") as bob:
        array = alice.array([1.0, 2.0])
        assert array.numpy().tolist() == [1, 2]
        expect(kiln.NotFound, f"there is no tensor {array._id}; it was freed, or its session has ended",
               lambda: bob.download(array._id))
    with pytest.raises(kiln.Unavailable):
        check(address, ca=ca)  # without one TLS does not begin


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_a_token_does_where_there_are_both(start, short_folder):
    _certificates(short_folder, "alice")
    ca, token = short_folder / "ca.pem", short_folder / "token"
    token.write_text("bob secret\n")
    token.chmod(0o600)
    address = start("--tls-cert", short_folder / "kilnd.pem", "--tls-key", short_folder / "kilnd.key",
                    "--tls-client-ca", ca, "--token-file", token)
    assert check(address, ca=ca, token="secret") == [1, 2]
    assert check(address, ca=ca, cert=short_folder / "alice.pem", key=short_folder / "alice.key") == [1, 2]
    expect(kiln.Unauthenticated, "this daemon asks for a token, and the one given is missing or wrong",
           lambda: check(address, ca=ca))


def test_half_of_a_certificate_is_refused():
    expect(kiln.InvalidArgument, "a client's certificate and its key are given together (cert=, key=) or not at all",
           lambda: kiln.connect("localhost:1", ca=True, cert="cert.pem"))
    expect(kiln.InvalidArgument, "a client's certificate needs TLS: give the authorities of the service, too (ca=)",
           lambda: kiln.connect("localhost:1", cert="cert.pem", key="key.pem"))


@pytest.fixture
def private(program, short_folder, monkeypatch):
    """The environment of a user without a daemon; gives a function that ends the one that was started."""
    monkeypatch.delenv("KILN_ADDRESS", raising=False)
    monkeypatch.setenv("KILN_DAEMON", program)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(short_folder / "cache"))


def test_the_private_daemon_serves_the_next_program_from_memory(private):
    text = ("import kiln; from kiln import te; a = te.placeholder((8,), name='A');"
            "f = kiln.build([a, te.compute((8,), lambda i: a[i] * 3, name='B')]);"
            "print(kiln.describe()['pid'], f.timings['cache'], f([1.0] * 8).numpy().sum())")
    lines = [subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True,
                            timeout=60).stdout.split() for _ in range(2)]
    pid = int(lines[0][0])
    os.kill(pid, signal.SIGTERM)
    assert lines == [[str(pid), "compiled", "24.0"], [str(pid), "memory", "24.0"]]
    limit = time.monotonic() + 20
    while pathlib.Path(f"/proc/{pid}").exists():
        assert time.monotonic() < limit
        time.sleep(0.05)


def _install(program, folder):
    """A copy of kilnd in place of one that is there, with the workers beside it."""
    copy = folder / "bin" / "kilnd"
    copy.parent.mkdir(exist_ok=True)
    copy.unlink(missing_ok=True)
    shutil.copy(program, copy)
    if not (folder / "libexec").exists():
        (folder / "libexec").symlink_to(pathlib.Path(program).resolve().parent.parent / "libexec")
    return str(copy)


def _pid_of_the_private_daemon():
    with kiln.connect(default=False) as connection:
        return connection.describe()["pid"]


def test_a_private_daemon_ends_when_another_build_is_in_its_place_and_nobody_is_there(program, private, short_folder, monkeypatch):
    monkeypatch.setenv("KILN_DAEMON", _install(program, short_folder))
    monkeypatch.delenv("KILN_ADDRESS", raising=False)
    with kiln.connect(default=False) as connection:
        first = connection.describe()["pid"]
        _install(program, short_folder)
        time.sleep(2)
        assert connection.describe()["pid"] == first  # as long as somebody uses it
    limit = time.monotonic() + 30
    while pathlib.Path(f"/proc/{first}").exists():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(first, os.WNOHANG)
        assert time.monotonic() < limit
        time.sleep(0.05)
    second = _pid_of_the_private_daemon()
    assert second != first
    os.kill(second, signal.SIGTERM)


@pytest.mark.parametrize("example", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_agrees_with_numpy(kilnd, monkeypatch, example):
    monkeypatch.setenv("KILN_ADDRESS", kilnd)
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "agrees" in done.stdout and not done.stderr


def test_an_array_outlives_many_calls(daemon):
    """Nothing leaks: results that are dropped are freed on the daemon."""
    from kiln import te

    a = te.placeholder((1000,), name="A")
    f = kiln.build([a, te.compute((1000,), lambda i: a[i] + 1, name="B")])
    x = kiln.nd.array(np.zeros(1000, "float32"))
    before = kiln.describe()["tensors"]
    for _ in range(500):
        x = f(x)
    assert x.numpy()[0] == 500
    assert kiln.describe()["tensors"] - before < 150


def test_after_a_restart_kernels_are_found_and_lost_arrays_are_named(program, short_folder):
    from kiln import te

    address = f"unix:{short_folder}/kilnd.sock"

    def run():
        process = subprocess.Popen(
            [program, "--listen", address, "--cache-dir", short_folder / "cache"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout.readline().startswith("listening on ")
        return process

    process = run()
    try:
        with kiln.connect(address) as connection:
            a = te.placeholder((4,), name="A")
            f = kiln.build([a, te.compute((4,), lambda i: a[i] + 1, name="B")], name="add_one")
            kept = kiln.nd.array(np.zeros(4, "float32"))
            process.terminate()
            assert process.wait(timeout=20) == 0
            process.stdout.close()
            process = run()
            assert f(np.zeros(4, "float32")).numpy().tolist() == [1, 1, 1, 1]
            assert connection.describe()["compiles"] == 0
            with pytest.raises(kiln.HandleLost) as caught:
                f(kept)
            assert caught.value.reason == "HANDLE_LOST"
            assert kiln.nd.array([1.0]).numpy().tolist() == [1]
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


def test_transfers_of_bytes_that_are_no_message_are_refused(start):
    address = start()
    with kiln.connect(address, default=False) as connection, grpc.insecure_channel(address) as channel:
        service = "/kiln.v1.TensorService"
        upload = channel.stream_unary(f"{service}/Upload")
        download = channel.unary_stream(f"{service}/Download")
        for call, message in [
            (lambda: upload(iter([b"\xff"])), "the upload has a message that is none"),
            (lambda: upload(iter([b"\x12\x05ab"])), "the upload has a message that is none"),
            (lambda: list(download(b"\xff")), "the request of a download is none"),
        ]:
            with pytest.raises(grpc.RpcError) as error:
                call()
            assert (error.value.code(), error.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, message)
        assert connection.array([1.0]).tolist() == [1]

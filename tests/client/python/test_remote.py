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
from tree import ROOT, find_program

import kiln


@pytest.fixture
def program():
    found = find_program("kilnd")
    if found is None:
        pytest.skip("no kilnd was found: build it, or set KILN_DAEMON")
    return str(found)


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

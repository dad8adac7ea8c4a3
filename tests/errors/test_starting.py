"""What kilnd says when it cannot start: one line, and an exit code that is not 0."""

import os
import shutil
import subprocess

import pytest

LONG = "x" * 120

# flags, files in its folder, exit code, what it says
MISTAKES = [
    ("--foo", {}, 2, "kilnd has no flag --foo; kilnd --help shows how"),
    ("--thread 4", {}, 2, "kilnd has no flag --thread; did you mean --threads; kilnd --help shows how"),
    ("--threads many", {}, 2, "--threads must be from 0 to 4096, but got many; kilnd --help shows how"),
    ("--threads 5000", {}, 2, "--threads must be from 0 to 4096, but got 5000; kilnd --help shows how"),
    ("--listen --threads 3", {}, 2,
     "--listen needs a value: unix:PATH or HOST:PORT; port 0 takes a free one; kilnd --help shows how"),
    ("--config nosuch.toml", {}, 2, "--config must be a file that exists, but got nosuch.toml; kilnd --help shows how"),
    ("--log-level loud", {}, 2,
     "--log-level must be one of debug, info, warn, error, but got loud; kilnd --help shows how"),
    ("serve", {}, 2, "kilnd takes no serve here; kilnd --help shows how"),
    ("--listen unix:s --tls-cert c.pem", {}, 2, "--tls-cert and --tls-key are given together or not at all"),
    ("--listen 127.0.0.1:0 --tls-client-ca ca.pem", {}, 2,
     "--tls-client-ca needs --tls-cert and --tls-key: certificates are shown over TLS alone"),
    ("--config kilnd.toml", {"kilnd.toml": 'isolation = "thread"\n'}, 2,
     "the isolation is thread, but must be process or none"),
    (f"--listen unix:{LONG}", {}, 2, f"the path {LONG} is too long for a unix socket; it may have 107 bytes"),
    ("--listen nowhere", {}, 2, "the address nowhere is neither unix:PATH nor HOST:PORT"),
    ("--listen 0.0.0.0:0", {}, 2,
     "0.0.0.0:0 can be reached from other machines; give --credentials, a folder in which it makes a token and a "
     "certificate, or --token-file (and --tls-cert and --tls-key), or --insecure to serve everybody"),
    ("--listen 127.0.0.1:0 --credentials made --token-file token", {"token": "secret"}, 2,
     "--credentials has a token and a certificate made: leave out --token-file and --tls-cert"),
    ("--listen 127.0.0.1:0 --credentials token/made", {"token": "a file"}, 2,
     "token/made/token cannot be written: Not a directory; name another folder with --credentials"),
    ("--listen 127.0.0.1:0 --token-file token", {}, 2, "cannot read the token in token"),
    ("--listen 127.0.0.1:0 --token-file token", {"token": " \n"}, 2, "the token in token is empty"),
    ("--listen 127.0.0.1:0 --tls-cert c.pem --tls-key k.pem", {"k.pem": "key"}, 2,
     "cannot read the certificate in c.pem"),
    ("--listen unix:s --warm-up nowhere", {}, 2, "cannot read the warm-up list in nowhere"),
    ("--listen 203.0.113.9:7171 --insecure", {}, 1,
     "cannot listen on 203.0.113.9:7171; the address is in use, not of this host, or the certificate and key do not "
     "fit"),
    ("--config kilnd.toml", {"kilnd.toml": 'threads = "many"\n'}, 2,
     "kilnd.toml: threads in the configuration must be a whole number"),
    ("--config kilnd.toml", {"kilnd.toml": "tenants = 3\n"}, 2,
     "kilnd.toml: tenants in the configuration must be tables, [tenants.NAME]"),
    ("--config kilnd.toml", {"kilnd.toml": "[tenants]\nalice = 3\n"}, 2,
     "kilnd.toml: tenants.alice in the configuration must be a table of settings"),
    ("--config kilnd.toml", {"kilnd.toml": "[tenants.alice]\nkernel = 3\n"}, 2,
     "kilnd.toml: there is no setting tenants.alice.kernel; did you mean tenants.alice.kernels"),
    ("--config kilnd.toml", {"kilnd.toml": "[tenants.alice]\njobs = -1\n"}, 2,
     "kilnd.toml: tenants.alice.jobs in the configuration must be 0 or more"),
    ("--config kilnd.toml", {"kilnd.toml": '[tenants.alice]\ndevice-seconds = "many"\n'}, 2,
     "kilnd.toml: tenants.alice.device-seconds in the configuration must be a number of seconds"),
    ("--config kilnd.toml", {"kilnd.toml": "threads = 2\nlisten =\n"}, 2,
     r"kilnd.toml: line 2: Error while parsing key-value pair: expected value, saw '\n'"),
]  # fmt: skip


def kilnd(folder, flags):
    program = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
    command = [program, *flags.split(), "--cache-dir", str(folder / "cache")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def last_line(done):
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("flags, files, code, message", MISTAKES, ids=[m[:60] for *_, m in MISTAKES])
def test_a_daemon_that_cannot_start_says_why(tmp_path, flags, files, code, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = kilnd(tmp_path, flags)
    assert (last_line(done), done.returncode, done.stdout) == (f"kilnd: {message}", code, "")


def test_a_setting_that_is_not_known_is_named(tmp_path):
    (tmp_path / "kilnd.toml").write_text('listenn = "unix:s"\n')
    done = kilnd(tmp_path, "--config kilnd.toml")
    assert last_line(done) == "kilnd: kilnd.toml: there is no setting listenn; did you mean listen"
    assert done.returncode == 2


def test_a_socket_of_a_living_daemon_is_left_alone(daemon, tmp_path):
    done = kilnd(tmp_path, f"--listen {daemon.address}")
    assert last_line(done) == f"kilnd: another daemon listens on {daemon.address} already"
    assert done.returncode == 1
    assert daemon.describe()["version"]

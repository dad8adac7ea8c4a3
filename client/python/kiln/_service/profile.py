"""Where a service is and how it is trusted, kept by `kiln login` for every client of the user; client/cpp/profile.cc
reads and writes the same files."""

import hashlib
import json
import os
import pathlib
import ssl

from .._base.error import NotFound, Unauthenticated, Unavailable, invalid

_SERVICE_NAME = "kiln"  # which the certificates are for that daemons make themselves


def folder():
    config = os.environ.get("XDG_CONFIG_HOME")
    return pathlib.Path(config or os.path.join(os.path.expanduser("~"), ".config")) / "kiln"


def load():
    """The fields of the profile that KILN_PROFILE names, or "default"; nothing where there is none."""
    name = os.environ.get("KILN_PROFILE", "default")
    if not name:
        return None
    path = _file(name, ".json")
    try:
        fields = json.loads(path.read_text())
        address = fields["address"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        raise invalid(
            "PROFILE", f"the profile {path} is damaged: run the kiln login line of the service again, or delete the file"
        ) from None
    return {"address": address, **{key: fields.get(key) or None for key in ("token", "ca", "server_name")}}


def endpoint(address, token, ca, server_name):
    """What a connection is to, and how: what was given, then KILN_ADDRESS, KILN_TOKEN and KILN_CA, then the profile, whose
    token and certificate are for its own address alone. The private daemon has neither."""
    address = address or os.environ.get("KILN_ADDRESS") or None
    profile = load()
    if address or profile is not None:
        token = token or os.environ.get("KILN_TOKEN") or None
        ca = ca or os.environ.get("KILN_CA") or None
    if profile is None or (address and address != profile["address"]):
        return address, token, ca, server_name
    if not ca:
        ca, server_name = profile["ca"], profile["server_name"]
    return profile["address"], token or profile["token"], ca, server_name


def store(name, address, token, certificate, server_name):
    """Writes a profile, and the certificate (PEM) where it has one; the path of the profile."""
    path = _file(name, ".json")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca = ""
    if certificate:
        ca = str(_file(name, ".pem"))
        _write(ca, certificate)
    fields = {"address": address, "token": token or "", "ca": ca, "server_name": server_name}
    _write(path, json.dumps(fields, indent=2) + "\n")
    return path


def remove(name):
    for extension in (".json", ".pem"):
        try:
            _file(name, extension).unlink()
        except FileNotFoundError:
            if extension == ".json":
                raise NotFound(f"there is no profile {name}: nobody logged in under it", "PROFILE") from None


def log_in(connect, address, token=None, fingerprint=None, ca=None, name="default"):
    """Tries a service and keeps it; the connection it was tried with and the path of the profile."""
    certificate, server_name = None, ""
    if ca:
        certificate = pathlib.Path(ca).read_text()
    elif fingerprint:
        certificate, server_name = _pinned(address, fingerprint), _SERVICE_NAME
    trusted = certificate.encode() if certificate else None
    connection = connect(address, token, trusted, server_name or None)
    return connection, store(name, address, token, certificate, server_name)


def _pinned(address, fingerprint):
    """The certificate that the service shows, if it is the one with this fingerprint."""
    host, _, port = address.rpartition(":")
    try:
        shown = ssl.get_server_certificate((host.strip("[]"), int(port)))
    except (OSError, ValueError):
        from .diagnose import why_unreachable

        said = (f"the service at {address} does not speak TLS, so it has no fingerprint: leave --fingerprint out, or "
                "correct the address")  # fmt: skip
        reason, message = why_unreachable(address, None, said)
        raise Unavailable(message, reason) from None
    found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest()
    if found != fingerprint.replace(":", "").lower():
        raise Unauthenticated(
            f"the certificate of {address} has the fingerprint {found}, not {fingerprint}: copy the login line from the "
            "service's log; if it is the same, another machine answers in its place",
            "CERTIFICATE",
        )
    return shown


def _file(name, extension):
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise invalid("PROFILE", f"{name or 'an empty word'} is no name of a profile: use letters and digits")
    return folder() / (name + extension)


def _write(path, text):
    """A file that its owner alone reads, whole or not at all."""
    part = f"{path}.part"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(part, path)

"""Why a service is not reached: what gRPC does is done again step by step, name, port, TLS, HTTP/2, and the step that
fails is said in a sentence with the way out. gRPC's own texts differ from version to version and name its internals.

client/cpp/diagnose.cc says the same in the same words.
"""

import os
import socket
import ssl

_SECONDS = 3
# What a client of HTTP/2 says first, with empty settings; a server's first frame is its settings as well.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4
_FRAME = 9  # bytes of a frame's header
_OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


def why_unreachable(address, ca, otherwise, server_name=None):
    """The reason and the sentence for a service that gave no answer; `otherwise` is said where every step works."""
    try:
        if address.startswith("unix:"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
                plain.settimeout(_SECONDS)
                plain.connect(address[len("unix:") :])
        else:
            host, _, port = address.rpartition(":")
            where = (host.strip("[]"), int(port))
            with socket.create_connection(where, _SECONDS) as plain:
                if ca:
                    found = _tls_fault(address, where, server_name or where[0], ca, plain)
                else:
                    found = _plain_fault(address, where, plain)
            if found:
                return found
    except (OSError, OverflowError) as error:
        return "UNREACHABLE", _connection_fault(address, error)
    return "UNREACHABLE", otherwise


def _connection_fault(address, error):
    if isinstance(error, socket.gaierror):
        return f"no host is called {address.rpartition(':')[0]}: correct the address {address}"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {address}: start kilnd there, or correct the address"
    if isinstance(error, FileNotFoundError):
        return f"nothing listens at {address}, there is no such socket: start kilnd there, or correct the address"
    if isinstance(error, PermissionError):
        return f"the socket of {address} is another user's: have its owner start kilnd with a port and a token"
    if isinstance(error, (TimeoutError, socket.timeout)):
        return f"{address} does not answer: correct the address, or let the port through its firewall"
    return f"{address} cannot be reached: {error.strerror or error}; correct the address"


def _plain_fault(address, where, plain):
    """What is wrong when no TLS was asked for; nothing when it speaks HTTP/2."""
    answer = b""
    try:
        plain.settimeout(_SECONDS)
        plain.sendall(_PREFACE)
        answer = plain.recv(_FRAME)
    except OSError:
        pass  # a server of TLS may end the connection
    if len(answer) == _FRAME and answer[3] == _SETTINGS:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(where, _SECONDS) as again, context.wrap_socket(again):
            return "TLS", (f"the service at {address} wants TLS: name its certificate (ca=, --ca), or run the kiln "
                           "login line that it logged")  # fmt: skip
    except OSError:
        return "UNREACHABLE", f"what listens at {address} is no Kiln service: correct the address"


def _tls_fault(address, where, name, ca, plain):
    """What is wrong when TLS was asked for."""
    context = _context(ca)
    try:
        with context.wrap_socket(plain, server_hostname=name):
            return None
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OTHER_NAME:
            return "CERTIFICATE", (f"the certificate of {address} is for {_names(where, context)}, not for {name}: "
                                   "use such a name, or make a certificate for this one on the service")  # fmt: skip
        if error.verify_code == _EXPIRED:
            return "CERTIFICATE", f"the certificate of {address} has expired: make a new one on the service"
        who = "this system" if ca is True else "the one given" if isinstance(ca, bytes) else ca
        return "CERTIFICATE", (f"the certificate of {address} is none that {who} vouches for: take the service's own, "
                               "from the kiln login line that it logged")  # fmt: skip
    except OSError:
        return "TLS", (f"the service at {address} does not speak TLS: leave the certificate out (ca=, --ca), or start "
                       "kilnd with --tls-cert and --tls-key")  # fmt: skip


def _context(ca):
    """TLS that trusts what the connection was told to."""
    if ca is True:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if isinstance(ca, bytes):
        context.load_verify_locations(cadata=ca.decode())
    else:
        context.load_verify_locations(os.fspath(ca))
    return context


def _names(where, context):
    """What the service's certificate was made for; it is one that `context` trusts."""
    context.check_hostname = False
    with socket.create_connection(where, _SECONDS) as plain, context.wrap_socket(plain) as tls:
        return ", ".join(name for _, name in tls.getpeercert().get("subjectAltName", ())) or "no name"

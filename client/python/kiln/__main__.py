"""`python -m kiln`: what a user needs of the command line where there is none, on Windows and macOS."""

import argparse
import sys

from . import Error, __version__
from ._service import profile
from ._service.connection import Connection, connect


def _login(flags):
    connection, path = profile.log_in(
        Connection, flags.address, flags.token, flags.fingerprint, flags.ca, flags.profile
    )
    with connection:
        service = connection.describe()
    devices = ", ".join(device["name"] for device in service["devices"])
    print(f"logged in to {flags.address}, version {service['version']}, with {devices}")
    print(f"clients of this user reach it without an address ({path}); kiln logout forgets it")


def _logout(flags):
    profile.remove(flags.profile)
    print(f"logged out: the profile {flags.profile} is forgotten")


def _doctor(flags):
    with connect(flags.address, default=False) as connection:
        service = connection.describe()
        print(f"ok       client   version {__version__}")
        print(f"ok       service  version {service['version']} at {connection.address}")
        for part in service["components"]:
            print(f"{'ok     ' if part['ok'] else 'missing'}  {part['name']:7}  {part['message']}")


def _parser():
    parser = argparse.ArgumentParser(prog="python -m kiln", description=__doc__)
    commands = parser.add_subparsers(required=True)
    login = commands.add_parser("login", help="keep how a service is reached and trusted")
    login.add_argument("address", help="HOST:PORT")
    login.add_argument("--token", help="a bearer token")
    login.add_argument("--fingerprint", help="SHA-256 of the certificate to trust, as the service logs it")
    login.add_argument("--ca", help="a PEM file with the authorities to trust instead")
    login.add_argument("--profile", default="default", help="a name, for $KILN_PROFILE to choose by")
    login.set_defaults(run=_login)
    logout = commands.add_parser("logout", help="forget what login kept")
    logout.add_argument("--profile", default="default", help="the name it was kept under")
    logout.set_defaults(run=_logout)
    doctor = commands.add_parser("doctor", help="say what works here, and what is missing")
    doctor.add_argument("--address", help="HOST:PORT or unix:PATH")
    doctor.set_defaults(run=_doctor)
    return parser


def main():
    flags = _parser().parse_args()
    try:
        flags.run(flags)
    except Error as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Several daemons as one: a call goes to one that answers, and to another when that one ends.

Which one is the policy's: `affinity` gives each kernel a home by rendezvous hashing (Thaler and Ravishankar 1998), so
that it is compiled, cached and warm in one place and only a lost server's kernels move; `round_robin` takes the
servers in turn. Calls of numpy arrays bring all that they need and take all that they gave, so they may be repeated
elsewhere; calls of arrays that live on a server go to that one.
"""

import atexit
import concurrent.futures
import hashlib
import itertools
import socket
import threading
import weakref

from .._base.error import Unavailable, invalid, public
from ..v1 import service_pb2 as wire
from .build import compile_parts
from .connection import grpc_target
from .fleet_call import FleetFunction
from .member import Member, NotHere, Server
from .profile import endpoint

_POLICIES = ("affinity", "round_robin")
_RESOLVE_SECONDS = 5.0  # between two looks at what a name stands for
_CALLS_AT_A_TIME = 32  # of those that `submit` leaves to threads

_fleets = weakref.WeakSet()


class Fleet:
    """Several daemons: `Fleet(["a:7411", "b:7411"])`, one name that stands for all of them, `Fleet("kiln:7411")`, or a
    function that lists them. `build` makes functions whose calls go to one that answers."""

    @public
    def __init__(self, addresses=None, token=None, ca=None, server_name=None, policy="affinity"):
        if policy not in _POLICIES:
            raise invalid("POLICY", f"the policy of a fleet is {policy!r}; known: {', '.join(_POLICIES)}")
        if addresses is None:
            addresses, token, ca, server_name = endpoint(None, token, ca, server_name)
        listed = _listed(addresses() if callable(addresses) else addresses)
        self.policy = policy
        self._name = listed[0] if len(listed) == 1 and not callable(addresses) else None
        self._find = addresses if callable(addresses) else None
        if self._name and not self._name.startswith("unix:"):
            self._find = lambda: _addresses_of(self._name)
        self._endpoint = (token, ca, server_name)
        self._servers = {address: Server(address, self._connect) for address in listed}  # replaced, never changed
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._pool = None
        self._closed = threading.Event()
        if self._find:
            self.look_up()
            threading.Thread(target=self._keep_looking_up, name="kiln-fleet", daemon=True).start()
        _fleets.add(self)

    @property
    def servers(self):
        """The addresses, each with whether it answers."""
        return {server.address: server.up for server in self._servers.values()}

    @public
    def build(
        self, inputs, args=None, target=None, target_host=None, name="main", *,
        auto=None, strict=False, fast=False, reproducible=True,
    ):  # fmt: skip
        """As kiln.build; each server compiles the kernel when its first call comes there."""
        options = {"auto": auto, "strict": strict, "fast": fast, "reproducible": reproducible}
        sizes, parts = compile_parts(inputs, args, name, target, None, options)
        return FleetFunction(self, wire.CompileRequest(**parts), sizes)

    @public
    def connection(self, address):
        """The connection to one of the servers, for arrays, jobs and whatever else is each server's own."""
        server = self._servers.get(address)
        if server is None:
            raise invalid("ADDRESS", f"{address} is no server of this fleet; there are {', '.join(self._servers)}")
        try:
            return server.connection()
        except NotHere as missed:
            raise missed.error from None

    def describe(self):
        """What each server that answers says of itself, by address."""
        said = {}
        for server in list(self._servers.values()):
            if server.up:
                try:
                    said[server.address] = server.connection().describe()
                except (NotHere, Unavailable):
                    server.lost()
        return said

    def order(self, key):
        """The servers in the order in which a call of the kernel `key` tries them: what does not answer comes last."""
        servers = list(self._servers.values())
        if self.policy == "affinity":
            servers.sort(key=lambda server: _weight(key, server.address))
        else:
            first = next(self._turn) % len(servers)
            servers = servers[first:] + servers[:first]
        return sorted(servers, key=lambda server: not server.up)

    def look_up(self):
        """Finds the servers that there are now; one that is not named any more goes when it does not answer."""
        try:
            found = self._find() if self._find else []
        except Exception:
            found = []  # whoever knows them is away; those of before may be there
        if not found:
            return
        with self._lock:
            before, now = self._servers, {}
            for address in [*found, *(address for address, server in before.items() if server.up and server.connected)]:
                now[address] = before.get(address) or Server(address, self._connect)
            self._servers = now
        for address in before.keys() - now.keys():
            before[address].leave()

    def in_background(self, call):
        with self._lock:
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(_CALLS_AT_A_TIME, "kiln-fleet")
            return self._pool.submit(call)

    def close(self):
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown()
        for server in self._servers.values():
            server.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"Fleet({', '.join(self._servers)})"

    def _connect(self, address):
        token, ca, server_name = self._endpoint
        given = self._name or address
        host = given.rpartition(":")[0] if ca and given != address else None  # whom the certificate is for
        _, token, ca, server_name = endpoint(given, token, ca, server_name)
        return Member(self, address, token, ca, server_name or host)

    def _keep_looking_up(self):
        while not self._closed.wait(_RESOLVE_SECONDS):
            self.look_up()


def _listed(addresses):
    """The addresses that were given, as a list or between commas."""
    each = addresses.split(",") if isinstance(addresses, str) else addresses or ()
    listed = [address.strip() for address in each if address.strip()]
    if not listed:
        raise invalid("ADDRESS", 'a fleet needs addresses: Fleet(["a:7411", "b:7411"]), or KILN_ADDRESS')
    for address in listed:
        grpc_target(address)  # refuses what is none
    return listed


def _weight(key, address):
    return hashlib.blake2b(address.encode(), key=key, digest_size=8).digest()


def _addresses_of(name):
    """The addresses that HOST:PORT stands for: of a headless service, those of all its servers."""
    host, _, port = name.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError:
        return []  # connecting to the name says what is wrong
    numbers = dict.fromkeys(place[4][0] for place in found)
    return [f"[{number}]:{port}" if ":" in number else f"{number}:{port}" for number in numbers]


def _close_all():
    for fleet in list(_fleets):
        fleet.close()


atexit.register(_close_all)  # before the connections are closed

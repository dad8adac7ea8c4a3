"""Kiln on a Ray cluster: a kilnd on each node that Ray chooses, as an actor that Ray starts again when it is lost.

    import kiln_on_ray, ray
    ray.init(address="auto")
    kiln_on_ray.start(servers=4, gpus=1)       # once; they stay until stop(), whoever started them
    with kiln_on_ray.fleet() as fleet:         # anywhere in the cluster
        f = fleet.build([A, B])
        y = f(x)
    kiln_on_ray.stop()

Needs the packages kiln and kiln-daemon on every node. The servers have a token and a certificate of their own, which
whoever may use the Ray cluster can have.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

import kiln
import ray

NAMESPACE = "kiln"
_SECRETS = ("token", "cert.pem", "key.pem")
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl


@ray.remote(max_restarts=-1)
class Server:
    """A kilnd. It ends with the actor, and the actor with it, so that Ray starts both again."""

    def __init__(self, secrets, flags):
        self._secrets = secrets
        self._draining = False
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-"))
        credentials = folder / "credentials"
        credentials.mkdir(mode=0o700)
        for name, contents in secrets.items():
            with open(os.open(credentials / name, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(contents)
        self._process, self._address = _started(
            f"{ray.util.get_node_ip_address()}:0", "--credentials", credentials, "--cache-dir", folder / "cache", *flags)
        threading.Thread(target=self._end_together, daemon=True).start()

    def address(self):
        return self._address

    def pid(self):
        return self._process.pid

    def secrets(self):
        return self._secrets

    def drain(self):
        """Lets its calls end."""
        self._draining = True
        self._process.terminate()
        self._process.wait()

    def _end_together(self):
        self._process.wait()
        if not self._draining:
            os._exit(1)


@ray.remote(num_cpus=0)
def _new_secrets():
    """A token, a certificate and its key, as a daemon makes them when it starts."""
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
        process, _ = _started("127.0.0.1:0", "--credentials", folder, "--cache-dir", f"{folder}/cache")
        process.terminate()
        process.wait()
        return {name: pathlib.Path(folder, name).read_bytes() for name in _SECRETS}


def _started(listen, *flags):
    """A kilnd that listens, and where."""
    program = os.environ.get("KILN_DAEMON") or shutil.which("kilnd")
    if program is None:
        raise FileNotFoundError("there is no kilnd on PATH: pip install kiln-daemon on every node")
    process = subprocess.Popen([program, "--listen", listen, *flags], stdout=subprocess.PIPE, text=True,
                               preexec_fn=_end_with_parent)
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        raise RuntimeError("kilnd did not start; the log of this actor says why")
    return process, line.split()[-1]


def _end_with_parent():
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def start(servers=1, gpus=0, cpus=2, flags=()):
    """Starts the servers, on different nodes as far as there are so many; `flags` are kilnd's."""
    options = {"namespace": NAMESPACE, "lifetime": "detached", "num_cpus": cpus, "num_gpus": gpus,
               "scheduling_strategy": "SPREAD"}
    secrets = ray.get(_new_secrets.remote())
    actors = [Server.options(name=f"kilnd-{number}", **options).remote(secrets, list(flags)) for number in range(servers)]
    return ray.get([actor.address.remote() for actor in actors])


def addresses(seconds=5):
    """Where the servers are that answer Ray."""
    asked = [actor.address.remote() for actor in _actors()]
    answered, _ = ray.wait(asked, num_returns=len(asked), timeout=seconds) if asked else ([], [])
    found = []
    for answer in answered:
        try:
            found.append(ray.get(answer))
        except ray.exceptions.RayError:
            pass  # it is being started again
    return found


def fleet(policy="affinity"):
    """A kiln.Fleet of the servers, also of those that Ray starts later."""
    actors = _actors()
    if not actors:
        raise LookupError("there is no kilnd in this Ray cluster: call kiln_on_ray.start first")
    secrets = ray.get(actors[0].secrets.remote())
    return kiln.Fleet(addresses, secrets["token"].decode().strip(), secrets["cert.pem"], "kiln", policy)


def stop():
    """Ends the servers, each when its calls have ended."""
    actors = _actors()
    ended = [actor.drain.remote() for actor in actors]
    if ended:
        ray.wait(ended, num_returns=len(ended), timeout=40)
    for actor in actors:
        ray.kill(actor)


def _actors():
    found = [each for each in ray.util.list_named_actors(all_namespaces=True) if each["namespace"] == NAMESPACE]
    return [ray.get_actor(each["name"], NAMESPACE) for each in found]

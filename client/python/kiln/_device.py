"""Devices as programs name them: cpu(0), cuda(0)."""

from ._error import invalid, public

_KINDS = {"cpu": "cpu", "llvm": "cpu", "cuda": "cuda", "gpu": "cuda"}


class Device:
    """A device of the daemon's host."""

    __slots__ = ("kind", "index")

    def __init__(self, kind, index=0):
        self.kind = kind
        self.index = index

    @property
    def device_type(self):
        return {"cpu": 1, "cuda": 2}[self.kind]

    @property
    def device_id(self):
        return self.index

    @property
    def exist(self):
        """Whether the daemon has it and it is ready."""
        from ._connection import default_connection

        devices = default_connection().describe()["devices"]
        return any(d["name"] == self.wire_name and d["state"] == "ready" for d in devices)

    @property
    def wire_name(self):
        return f"{self.kind}:{self.index}"

    def sync(self):
        """Nothing to wait for: calls return when they are done."""

    def __eq__(self, other):
        return isinstance(other, Device) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self):
        return hash((self.kind, self.index))

    def __repr__(self):
        return f"{self.kind}({self.index})"


@public
def device(dev_type, dev_id=None):
    """A device by name: device("cuda", 0), device("cuda:0"), device("llvm")."""
    if isinstance(dev_type, Device):
        return dev_type
    name, _, index = str(dev_type).split()[0].partition(":") if str(dev_type).strip() else ("", "", "")
    if name not in _KINDS or (index and not index.isdigit()):
        raise invalid("DEVICE", f"unknown device {dev_type}; known: cpu, cuda, as in cuda:0")
    return Device(_KINDS[name], dev_id if dev_id is not None else int(index or 0))


def cpu(dev_id=0):
    """A CPU of the daemon's host."""
    return Device("cpu", dev_id)


def cuda(dev_id=0):
    """An NVIDIA GPU of the daemon's host."""
    return Device("cuda", dev_id)


gpu = cuda
context = device

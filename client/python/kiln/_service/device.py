"""Devices as programs name them: cpu(0), cuda(0)."""

from .._base.error import invalid, public, unsupported
from .connection import default_connection

KINDS = {"cpu": "cpu", "llvm": "cpu", "interpreter": "cpu", "cuda": "cuda", "gpu": "cuda"}

# The same for every GPU that CUDA has supported for years.
# Devices that classic programs ask for, with their numbers there; Kiln has none of them, and says so when one is used.
_ABSENT = {
    "opencl": 4, "vulkan": 7, "metal": 8, "vpi": 9, "rocm": 10, "ext_dev": 12, "hexagon": 14, "webgpu": 15,
}  # fmt: skip
_CUDA = {"max_threads_per_block": 1024, "warp_size": 32, "max_shared_memory_per_block": 48 << 10}


class Device:
    """A device of the daemon's host."""

    __slots__ = ("kind", "index")

    def __init__(self, kind, index=0):
        self.kind = kind
        self.index = index

    @property
    def device_type(self):
        return {"cpu": 1, "cuda": 2, **_ABSENT}[self.kind]

    @property
    def device_id(self):
        return self.index

    @property
    def exist(self):
        """Whether the daemon has it and it is ready; never of a kind that Kiln lacks."""
        row = self._row()
        return row is not None and row["state"] == "ready"

    def _row(self):
        if self.kind in _ABSENT:
            return None
        devices = default_connection().describe()["devices"]
        return next((row for row in devices if row["name"] == self.wire_name), None)

    @property
    def device_name(self):
        """What it is, in the words of the daemon; None where there is none."""
        row = self._row()
        return row and row["description"]

    @property
    def total_global_memory(self):
        """Its memory in bytes; None where there is none."""
        row = self._row()
        return row and row["memory_bytes"]

    @property
    def compute_version(self):
        """As "9.0" for sm_90; None for a CPU."""
        row = self._row() if self.kind == "cuda" else None
        digits = "".join(filter(str.isdigit, row["arch"])) if row else ""
        return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else None

    @property
    def max_threads_per_block(self):
        """None for a CPU, as classic programs have it."""
        return _CUDA["max_threads_per_block"] if self.kind == "cuda" else None

    @property
    def warp_size(self):
        return _CUDA["warp_size"] if self.kind == "cuda" else None

    @property
    def max_shared_memory_per_block(self):
        return _CUDA["max_shared_memory_per_block"] if self.kind == "cuda" else None

    @property
    def wire_name(self):
        if self.kind in _ABSENT:
            raise unsupported("DEVICE", f"Kiln has no {self.kind} devices; its devices are cpu and cuda")
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
    if name not in KINDS.keys() | _ABSENT.keys() or (index and not index.isdigit()):
        raise invalid("DEVICE", f"unknown device {dev_type}; known: cpu, cuda, as in cuda:0")
    return Device(KINDS.get(name, name), dev_id if dev_id is not None else int(index or 0))


def _absent(name):
    def absent(dev_id=0):
        return Device(name, dev_id)

    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = "A device that Kiln does not have: `exist` is False, and using it is refused."
    return absent


metal, opencl, rocm, vulkan = map(_absent, ("metal", "opencl", "rocm", "vulkan"))
cl = opencl


def cpu(dev_id=0):
    """A CPU of the daemon's host."""
    return Device("cpu", dev_id)


def cuda(dev_id=0):
    """An NVIDIA GPU of the daemon's host."""
    return Device("cuda", dev_id)


gpu = cuda
context = device

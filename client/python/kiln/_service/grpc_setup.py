"""gRPC, told how to wait before it starts, and to leave it to Kiln to say what is wrong."""

import importlib.metadata
import os


def _wait_in_the_calling_thread():
    """Small calls take a quarter less when the calling thread itself waits for the reply.

    The name is that of a switch of gRPC's; versions that do not know it would complain. Programs that are packed as a
    whole may lack what says which version they have.
    """
    try:
        major, minor = importlib.metadata.version("grpcio").split(".")[:2]
    except importlib.metadata.PackageNotFoundError:
        return
    if (1, 60) <= (int(major), int(minor)) <= (1, 85):
        os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client")


def _keep_freed_blocks():
    """Has malloc keep some MiB of what is freed, as glibc's does by itself once a block of this size was freed.

    Without it each MiB that arrives lies in memory that is taken from the system and given back at once, and a fresh page
    costs more than filling it. The block takes no memory, since nobody touches it.
    """
    block = bytes(16 << 20)
    del block


_wait_in_the_calling_thread()
_keep_freed_blocks()
# Its lines on the terminal name files of gRPC. Whoever looks for a fault in gRPC sets another level.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc  # noqa: E402
import grpc.experimental  # noqa: E402

__all__ = ["grpc"]

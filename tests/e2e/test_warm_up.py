"""A daemon that compiles a list of kernels before it says that it is ready."""

import time

import grpc

import kernels
import kiln
from kiln.v1 import service_pb2 as wire

SERVING = b"\x08\x01"  # HealthCheckResponse{status: SERVING}


def health(address):
    with grpc.insecure_channel(address) as channel:
        return channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10)


def test_what_is_listed_is_compiled_before_it_is_ready(start, tmp_path):
    (tmp_path / "twice.kiln").write_text("kernel twice(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] * 2 }")
    earlier = start()
    built = earlier.connection.build(kernels.matmul(32, 32, 32), name="matmul")
    built.export_library(str(tmp_path / "matmul.module"))
    assert earlier.stop() == 0
    (tmp_path / "other").write_text("no module")
    broken = wire.SavedModule(format="kiln module 1", kernels=[wire.SavedKernel(request=b"\xff")])
    (tmp_path / "broken").write_bytes(broken.SerializeToString())
    warm_up = tmp_path / "list"
    warm_up.write_text("twice.kiln  # of this folder\nmatmul.module\nnowhere.kiln\nother\nbroken\n")
    daemon = start(flags=["--warm-up", str(warm_up)])
    limit = time.monotonic() + 60
    while health(daemon.address) != SERVING:
        assert time.monotonic() < limit
        time.sleep(0.05)
    twice = kiln.parse_kernels((tmp_path / "twice.kiln").read_text(), "twice.kiln", connection=daemon.connection)["twice"]
    assert daemon.connection.build(twice).timings["cache"] == "memory"
    assert daemon.connection.build(kernels.matmul(32, 32, 32), name="matmul").timings["cache"] == "memory"
    log = daemon.log.read_text()
    for name, why in [
        ("nowhere.kiln", "it cannot be read"),
        ("other", "it is no module that export_library saved"),
        ("broken", "the module is damaged; build it again"),
    ]:
        assert f"{tmp_path}/{name} of the warm-up list is left out: {why}" in log
    assert "the warm-up list: 1 compiled, 1 there already, 0 failed" in log

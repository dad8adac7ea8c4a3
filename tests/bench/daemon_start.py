"""How long kilnd takes from its start until it listens and until it serves (a canary kernel has run), and how much memory it and
its workers have while idle, each page counted once (Pss):

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python tests/bench/daemon_start.py
"""

import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import grpc


def serves(address):
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        ask = channel.unary_unary("/grpc.health.v1.Health/Check")
        while True:
            try:
                if ask(b"", timeout=10) == b"\x08\x01":
                    return
            except grpc.RpcError:
                pass


def family(pid):
    """The process and all below it."""
    yield pid
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from family(child)


def bytes_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def one_start(folder, idle):
    begin = time.perf_counter()
    process = subprocess.Popen([os.environ["KILN_DAEMON"], "--listen", f"unix:{folder}/s", "--cache-dir", f"{folder}/cache",
                                "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    listens = time.perf_counter() - begin
    serves(f"unix:{folder}/s")
    ready = time.perf_counter() - begin
    time.sleep(idle)
    memory = {pid: bytes_of(pid) for pid in family(str(process.pid))}
    process.terminate()
    process.wait()
    process.stdout.close()
    return listens, ready, memory


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
        starts = [one_start(folder, 0)[:2] for _ in range(9)]
        *_, memory = one_start(folder, 15)
    for what, times in zip(("listens", "serves"), zip(*starts)):
        print(f"{what} after {1e3 * min(times):.0f} ms at least, {1e3 * statistics.median(times):.0f} ms in the middle of {len(times)}")
    print(f"idle: {sum(memory.values()) / 2**20:.0f} MiB in {len(memory)} processes "
          f"({', '.join(f'{each / 2**20:.0f}' for each in memory.values())})")


if __name__ == "__main__":
    main()

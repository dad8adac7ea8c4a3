"""What the path between client and kernel costs, beside what the transport itself can do in the same run.

    build/venv/bin/python tests/bench/data_path.py [BUILD]     # BUILD: build/release

Prints a table for docs/performance.md; judges nothing. The peers are `raw_peer`, which is gRPC with nothing of Kiln in
it, and a copy of the array into shared memory. Of transfers the fastest of several is taken, of calls the median.
"""

import contextlib
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import grpc
import numpy as np

import kiln
from kiln import te

MIB = 64
CLIENTS = 8
SECONDS = 3
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.experimental.single_threaded_unary_stream", 1)]


def median_us(count, action):
    for _ in range(count // 10):
        action()
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds) * 1e6


def best(action, count=7):
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


@contextlib.contextmanager
def program(*command, ready):
    """A program that runs while its input is open, and the rest of its line that begins with `ready`."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    if not line.startswith(ready):
        raise SystemExit(f"{command[0]} did not start: {line}")
    yield line.removeprefix(ready).strip()
    process.stdin.close()
    process.terminate()
    process.wait()


def raw_python(address):
    """An empty call and streams of chunks of grpcio, with nothing around them."""
    channel = grpc.insecure_channel(address, OPTIONS)
    empty = channel.unary_unary("/raw/Empty")
    up, down = channel.stream_unary("/raw/Sink"), channel.unary_stream("/raw/Source")
    chunks = [bytes(1 << 20)] * MIB
    into = np.empty(MIB << 20, np.uint8)

    def download():
        at = 0
        for chunk in down(bytes(MIB)):
            into[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
            at += len(chunk)

    return {
        "empty_us": median_us(2000, lambda: empty(b"")),
        "up": (MIB << 20) / best(lambda: up(iter(chunks))),
        "down": (MIB << 20) / best(download),
    }


def memory_copy(values):
    """Seconds for a copy of the array into memory that is shared and has been touched."""
    fd = os.memfd_create("bench")
    os.ftruncate(fd, values.nbytes)
    with mmap.mmap(fd, values.nbytes) as shared:
        into = np.frombuffer(shared, values.dtype)
        np.copyto(into, values)
        seconds = best(lambda: np.copyto(into, values))
        del into
    os.close(fd)
    return seconds


def plus_one(connection):
    x = te.placeholder((te.var("n"),), name="X")
    return connection.build([x, te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus_one")


def python_client(address):
    with kiln.connect(address, default=False) as connection:
        f = plus_one(connection)
        small, values = np.zeros(16, "float32"), np.random.rand(MIB << 18).astype("float32")
        a, b = connection.array(small), connection.empty(16)
        kept = f(values)
        figures = {
            "tiny_us": median_us(3000, lambda: f(a, b)),
            "put_us": median_us(1000, lambda: connection.array(small)),
            "up": values.nbytes / best(lambda: connection.array(values)),
            "down": values.nbytes / best(kept.numpy),
            "call_ms": best(lambda: f(values)) * 1e3,
        }
        f(values)
        return {**figures, "kernel_ms": f.timings["kernel"] * 1e3}


def calls_of_one_client(address):
    with kiln.connect(address, default=False) as connection:
        f = plus_one(connection)
        a, b = connection.array(np.zeros(16, "float32")), connection.empty(16)
        f(a, b)
        print("ready", flush=True)
        sys.stdin.readline()
        calls, end = 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            f(a, b)
            calls += 1
        print(calls, flush=True)


def calls_of_all(address):
    """Calls a second of several processes together."""
    command = [sys.executable, __file__, "--client", address]
    clients = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(CLIENTS)
    ]
    for client in clients:
        client.stdout.readline()
    for client in clients:
        client.stdin.write("\n")
        client.stdin.flush()
    return sum(int(client.communicate()[0]) for client in clients) / SECONDS


def rate(bytes_a_second):
    """As GB/s; memory that is mapped is not moved at all."""
    return "mapped" if bytes_a_second > 1e11 else f"{bytes_a_second / 1e9:.2f}"


def row(name, *cells):
    print("| " + " | ".join([name, *cells]) + " |")


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    bench, kilnd = build / "tests/bench", build / "bin/kilnd"
    bench = bench if (bench / "raw_peer").exists() else build / "bin"
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, listen in (("local", f"unix:{folder}/s"), ("TCP", "127.0.0.1:0")):
            command = [kilnd, "--listen", listen, "--cache-dir", f"{folder}/cache-{name}"]
            with program(*command, ready="listening on ") as address:
                figures[name, "Python"] = python_client(address)
                cpp = subprocess.run([bench / "data_path", address, str(MIB)], capture_output=True, text=True, check=True)
                figures[name, "C++"] = json.loads(cpp.stdout)
                figures[name, "all"] = calls_of_all(address)
        for name, address in (("local", f"unix:{folder}/raw"), ("TCP", "127.0.0.1:47217")):
            with program(bench / "raw_peer", "serve", address, ready="ready"):
                figures[name, "raw Python"] = raw_python(address)
                cpp = subprocess.run(
                    [bench / "raw_peer", "measure", address, str(MIB)], capture_output=True, text=True, check=True
                )
                figures[name, "raw C++"] = json.loads(cpp.stdout)
    copy = memory_copy(np.random.rand(MIB << 18).astype("float32"))

    columns = [(name, client) for name in ("local", "TCP") for client in ("Python", "C++")]
    row("", *(f"{client}, {name}" for name, client in columns))
    row("---", *["---"] * len(columns))
    row("a call of a tiny kernel, us", *(f"{figures[c]['tiny_us']:.0f}" for c in columns))
    row("an array of 64 bytes to the daemon, us", *(f"{figures[c]['put_us']:.0f}" for c in columns))
    row("an empty call of gRPC, us", *(f"{figures[n, 'raw ' + c]['empty_us']:.0f}" for n, c in columns))
    for direction, what in (("up", "to the daemon"), ("down", "back")):
        row(f"{MIB} MiB {what}, GB/s", *(rate(figures[c][direction]) for c in columns))
        row(f"a stream of gRPC {what}, GB/s", *(f"{figures[n, 'raw ' + c][direction] / 1e9:.2f}" for n, c in columns))
    row(f"a call with {MIB} MiB, ms", *(f"{figures[c]['call_ms']:.1f}" for c in columns))
    row("the kernel in it, ms", *(f"{figures[c]['kernel_ms']:.1f}" for c in columns))
    print(f"\nA copy of {MIB} MiB into shared memory takes {copy * 1e3:.1f} ms ({(MIB << 20) / copy / 1e9:.1f} GB/s).")
    rates = (f"{figures[name, 'all']:,.0f} calls a second ({name})" for name in ("local", "TCP"))
    print(f"{CLIENTS} Python clients together: {', '.join(rates)}.")


if sys.argv[1:2] == ["--client"]:
    calls_of_one_client(sys.argv[2])
else:
    main()

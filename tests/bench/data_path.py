"""What the path between client and kernel costs, beside what the transport itself can do in the same run.

    build/venv/bin/python tests/bench/data_path.py [BUILD]     # BUILD: build/release; on a machine with nothing else to do

Prints a table for docs/performance/data_path.md, and below it each figure that is asked for with what was measured. The peers are
`raw_peer`, which is gRPC with nothing of Kiln in it, and a copy of the array into shared memory. Of transfers the fastest of
several is taken, of calls the median.
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


def pipelined_us(connection, f, a):
    """Of a call when many are under way, each with an output of its own."""
    outputs = [connection.empty(16) for _ in range(128)]

    def call_all():
        for future in [f.submit(a, b) for _ in range(20) for b in outputs]:
            future.result()

    call_all()
    return best(call_all, 3) / (20 * len(outputs)) * 1e6


def python_client(address):
    with kiln.connect(address, default=False) as connection:
        f = plus_one(connection)
        small, values = np.zeros(16, "float32"), np.random.rand(MIB << 18).astype("float32")
        a, b = connection.array(small), connection.empty(16)
        kept = f(values)
        figures = {
            "tiny_us": median_us(3000, lambda: f(a, b)),
            "put_us": median_us(1000, lambda: connection.array(small)),
            "piped_us": pipelined_us(connection, f, a),
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


def calls_of_all(command):
    """Calls a second of several processes together."""
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
                figures[name, "all Python"] = calls_of_all([sys.executable, __file__, "--client", address])
                figures[name, "all C++"] = calls_of_all([bench / "data_path", address])
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
    row("the same, many under way, us", *(f"{figures[c]['piped_us']:.0f}" if figures[c]["piped_us"] else "" for c in columns))
    row("an empty call of gRPC, us", *(f"{figures[n, 'raw ' + c]['empty_us']:.0f}" for n, c in columns))
    for direction, what in (("up", "to the daemon"), ("down", "back")):
        row(f"{MIB} MiB {what}, GB/s", *(rate(figures[c][direction]) for c in columns))
        row(f"a stream of gRPC {what}, GB/s", *(f"{figures[n, 'raw ' + c][direction] / 1e9:.2f}" for n, c in columns))
    row(f"a call with {MIB} MiB, ms", *(f"{figures[c]['call_ms']:.1f}" for c in columns))
    row("the kernel in it, ms", *(f"{figures[c]['kernel_ms']:.1f}" for c in columns))
    print(f"\nA copy of {MIB} MiB into shared memory takes {copy * 1e3:.1f} ms ({(MIB << 20) / copy / 1e9:.1f} GB/s).")
    for client in ("Python", "C++"):
        rates = (f"{figures[name, f'all {client}']:,.0f} calls a second ({name})" for name in ("local", "TCP"))
        print(f"{CLIENTS} {client} clients together: {', '.join(rates)}.")
    print_asked(figures, copy)


def print_asked(figures, copy):
    """Each figure that the path is to reach: what is asked, what was measured, and whether it holds."""
    rows = []

    def at_most(what, got, limit, unit):
        rows.append((what, f"at most {limit:.4g} {unit}", f"{got:.4g}", got <= limit))

    def at_least(what, got, limit, unit):
        rows.append((what, f"at least {limit:.4g} {unit}", f"{got:.4g}", got >= limit))

    for client in ("Python", "C++"):
        mine, raw, near = figures["TCP", client], figures["TCP", f"raw {client}"], figures["local", client]
        for direction, name in (("up", "upload"), ("down", "download")):
            at_least(f"{client}, TCP: {name} of {MIB} MiB", mine[direction] / 1e9, 2, "GB/s")
            at_least(f"{client}, TCP: {name} / a raw stream", mine[direction] / raw[direction], 0.8, "")
            at_least(f"{client}, local: {name} of {MIB} MiB", near[direction] / 1e9, 8, "GB/s")
        at_most(f"{client}, TCP: an array of 64 bytes / an empty call", mine["put_us"] / raw["empty_us"], 2, "")
        at_most(f"{client}, TCP: f(a, b) / an empty call", mine["tiny_us"] / raw["empty_us"], 2, "")
        at_most(f"{client}, TCP: f(a, b), many under way", mine["piped_us"], 20, "us")
        at_most(f"{client}, local: f(a, b)", near["tiny_us"], 40 if client == "Python" else 25, "us")
        at_most(f"{client}, local: f({MIB} MiB) / (kernel + a copy)", near["call_ms"] / (near["kernel_ms"] + copy * 1e3), 2, "")
        at_least(f"{CLIENTS} {client} clients, local", figures["local", f"all {client}"], 30_000, "calls/s")
    print()
    row("", "asked", "measured", "")
    row("---", "---", "---", "---")
    for what, asked, got, holds in rows:
        row(what, asked, got, "holds" if holds else "missed")


if sys.argv[1:2] == ["--client"]:
    calls_of_one_client(sys.argv[2])
else:
    main()

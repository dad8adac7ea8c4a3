"""Rows, columns and transposes as tileiras makes them of tiles, and as NVRTC does of CUDA C: a table of what is read, without a GPU.

    python tests/bench/tile_rows.py [--arch sm_90]...

Wants nvdisasm, NVRTC and tileiras (deploy/python-env.sh build/venv test) and a build with tests, whose kilnd KILN_DAEMON names."""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))

from conftest import Daemon
from tile_rows import ROWS, in_cuda_c, on_tiles


def words_of(code, kinds):
    """"8 STS, 8 LDS", of those that there are."""
    return ", ".join(f"{code.kinds[kind]} {kind}" for kind in kinds if code.kinds[kind]) or "none"


def line_of(way):
    memory = words_of(way.code, ("UTMALDG", "UTMASTG", "LDG", "STG"))
    shared = words_of(way.code, ("STS", "STSM", "LDS", "SHFL", "BAR"))
    return f"{way.each:.1f} | {way.registers} | {memory} | {shared}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append")
    for arch in parser.parse_args().arch or ["sm_90", "sm_100"]:
        print(f"\n{arch}\n\n| | way | I | registers | memory | shared memory |\n|---|---|---|---|---|---|")
        for name in ROWS:
            with tempfile.TemporaryDirectory() as folder:
                print(f"| {name} | tiles | {line_of(on_tiles(name, arch, folder))} |", flush=True)
                daemon = Daemon(folder)
                try:
                    print(f"| | CUDA C | {line_of(in_cuda_c(name, arch, daemon))} |", flush=True)
                finally:
                    daemon.stop()


if __name__ == "__main__":
    main()

"""Packs programs that were built before into a wheel: `KILN_PROGRAMS` names the folder with their `bin`, `lib` and `libexec`.

The wheel's name says the oldest C library it runs with, as PEP 600 has it: the newest version of a symbol that the
programs ask for. Whatever they need beside the C library is refused, since it would not be there.
"""

import os
import pathlib
import shutil
import stat

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["bin/kiln", "bin/kilnd", "libexec/kiln-worker"]
LIBRARY = "lib/libkiln_runtime.so"  # that the Python client loads
C_LIBRARY = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def folder():
    named = os.environ.get("KILN_PROGRAMS")
    if not named:
        raise SystemExit("kiln-daemon: KILN_PROGRAMS names no folder; deploy/build-wheels.sh sets it")
    return pathlib.Path(named)


def needs_of(program):
    """The libraries that a program is linked with, and the newest version of the C library that it asks for."""
    libraries, newest = set(), (2, 0)
    with open(program, "rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, DynamicSection):
                libraries |= {tag.needed for tag in section.iter_tags("DT_NEEDED")}
            elif isinstance(section, GNUVerNeedSection):
                names = [entry.name for _, entries in section.iter_versions() for entry in entries]
                versions = [name[len("GLIBC_"):].split(".") for name in names if name.startswith("GLIBC_2.")]
                newest = max([newest, *(tuple(map(int, version[:2])) for version in versions)])
    return libraries, newest


def platform_tag():
    newest = (2, 0)
    for name in [*PROGRAMS, LIBRARY]:
        libraries, version = needs_of(folder() / name)
        if libraries - C_LIBRARY:
            raise SystemExit(f"kiln-daemon: {name} needs {', '.join(sorted(libraries - C_LIBRARY))}, which is not "
                             "everywhere; build it with KILN_STATIC=ON, as the release preset does")
        newest = max(newest, version)
    return f"manylinux_{newest[0]}_{newest[1]}_x86_64"


class Pack(build_py):
    def run(self):
        super().run()
        shutil.copytree(folder() / "licenses", pathlib.Path(self.build_lib, "kiln_daemon", "licenses"))
        for name in [*PROGRAMS, LIBRARY]:
            target = pathlib.Path(self.build_lib, "kiln_daemon", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder() / name, target)
            target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", platform_tag()


class Programs(Distribution):
    def has_ext_modules(self):
        return True  # not the same file on every machine


setup(version=(ROOT / "VERSION").read_text().strip(), distclass=Programs,
      cmdclass={"build_py": Pack, "bdist_wheel": Wheel})

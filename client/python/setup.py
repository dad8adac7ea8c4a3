"""Builds the package: generates kiln/v1/*_pb2.py from the .proto files and kiln/_version.py from VERSION, which are not
copied here.

In the source tree they lie in ../..; a source distribution carries its own copies.
"""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = [f"kiln/v1/{name}.proto" for name in ("artifact", "calls", "error", "gradient", "kernel", "local", "predict", "program", "region", "schedule", "service", "trace", "types", "uploads")]


def source_root():
    for root in (HERE, HERE.parent.parent):
        if (root / "proto" / PROTOS[0]).exists():
            return root
    raise SystemExit("kiln: the .proto files are neither in ./proto nor in ../../proto")


def version():
    return (source_root() / "VERSION").read_text().strip()


def generate(into):
    from grpc_tools import protoc

    pathlib.Path(into, "kiln/v1").mkdir(parents=True, exist_ok=True)
    if protoc.main(["protoc", f"-I{source_root() / 'proto'}", f"--python_out={into}", *PROTOS]) != 0:
        raise SystemExit("kiln: protoc failed; its message stands above")
    pathlib.Path(into, "kiln/_version.py").write_text(f'VERSION = "{version()}"\n')


class BuildPackage(build_py):
    def run(self):
        super().run()
        # An editable install imports from the source folder, so the modules go there.
        generate(str(HERE) if self.editable_mode else self.build_lib)


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in ("VERSION", *(f"proto/{proto}" for proto in PROTOS)):
            target = pathlib.Path(base_dir, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source_root() / name, target)


setup(version=version(), cmdclass={"build_py": BuildPackage, "sdist": SourceDistribution})

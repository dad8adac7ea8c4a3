"""Builds the package: generates kiln/v1/*_pb2.py from the .proto files, which are not copied here.

In the source tree they lie in ../../proto; a source distribution carries its own copy.
"""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = [f"kiln/v1/{name}.proto" for name in ("error", "kernel", "program", "schedule", "service", "types")]


def proto_root():
    for root in (HERE / "proto", HERE.parent.parent / "proto"):
        if (root / PROTOS[0]).exists():
            return root
    raise SystemExit("kiln: the .proto files are neither in ./proto nor in ../../proto")


def generate(into):
    from grpc_tools import protoc

    pathlib.Path(into, "kiln/v1").mkdir(parents=True, exist_ok=True)
    if protoc.main(["protoc", f"-I{proto_root()}", f"--python_out={into}", *PROTOS]) != 0:
        raise SystemExit("kiln: protoc failed; its message stands above")


class BuildPackage(build_py):
    def run(self):
        super().run()
        # An editable install imports from the source folder, so the modules go there.
        generate(str(HERE) if self.editable_mode else self.build_lib)


class SourceDistribution(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for proto in PROTOS:
            target = pathlib.Path(base_dir, "proto", proto)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(proto_root() / proto, target)


setup(cmdclass={"build_py": BuildPackage, "sdist": SourceDistribution})

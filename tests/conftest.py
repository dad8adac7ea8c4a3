"""How the Python tests are divided among the processes of pytest-xdist: `pytest -n auto`."""

import os
import re

import pytest

# A daemon that ends says goodbye to the connections of its tests, which gRPC would write behind pytest's last line.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# Tests that use what an earlier one has compiled, by their names: they stay in one process, which has daemons of
# its own. Any other test runs wherever there is time. (Marks of xdist_group would say it at the tests, but have no
# effect with pytest 9.2 and pytest-xdist 3.8.)
KEPT_TOGETHER = [
    (re.compile(r"test_numpy\.py::test_operator\[.*-(\w+)\]$"), "the kernel of all operators of {}"),
    (re.compile(r"(?:test_topi\.py::test_it|test_kernel_text\.py::test_kernels_of_topi)\w+\[(.*)\]$"), "topi {}"),
    (re.compile(r"(test_cpp\.py)::"), "the run of the wrong programs of {}"),
    (re.compile(r"(test_wheels\.py)::"), "the wheels of {}"),
    (re.compile(r"gpu/(test_\w+\.py)::"), "the daemon of {}"),
]


def kept_with(nodeid):
    """What the tests have in common that stay with this one; a test for itself has its own name."""
    for pattern, group in KEPT_TOGETHER:
        found = pattern.search(nodeid)
        if found:
            return group.format(*found.groups())
    return nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class KeepingTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return kept_with(nodeid)

    return KeepingTogether(config, log)

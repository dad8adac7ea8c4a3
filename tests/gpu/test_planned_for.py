"""Which GPU kernels are planned for: the one that is here, by what its driver says; on the fake driver."""

import os
import pathlib

import pytest
from host import Host

import kiln
from kiln import te

# An L40S: 384 bits at 9 GHz.
L40S = {"FAKE_CUDA_MAJOR": "8", "FAKE_CUDA_MINOR": "9", "FAKE_CUDA_MULTIPROCESSORS": "142", "FAKE_CUDA_KILOHERTZ": "2520000",
        "FAKE_CUDA_MEMORY_KILOHERTZ": "9001000", "FAKE_CUDA_MEMORY_BITS": "384", "FAKE_CUDA_L2_BYTES": str(96 << 20)}
NAME = "sm_89+sms142+gbs864+l2mib96+mhz2520"


@pytest.fixture
def start():
    running = []

    def start(**settings):
        running.append(Host(pathlib.Path(os.environ["KILN_DAEMON"]).parent.parent, True, settings={**L40S, **settings}.items()))
        return running[-1].connection

    yield start
    for host in running:
        host.close()


def product():
    a, b = (te.placeholder((1024, 1024), name=name) for name in "AB")
    k = te.reduce_axis((0, 1024), name="k")
    return [a, b, te.compute((1024, 1024), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def schedule_of(connection, **target):
    return kiln.predict(product(), target="cuda" if not target else f"cuda -arch={target['arch']}", connection=connection)


def test_kernels_are_planned_for_the_gpu_that_is_here(start):
    connection = start()
    [device, _] = [each for each in connection.describe()["devices"] if each["target"] == "cuda"]
    assert (device["arch"], device["planned_as"]) == ("sm_89", NAME)
    here, card, table = (schedule_of(connection), schedule_of(connection, arch="sm_89+l40s"), schedule_of(connection, arch="sm_89"))
    assert "142 multiprocessors" in here.machine and "864 from memory" in here.machine, here.machine
    assert here.schedules[0].steps == card.schedules[0].steps != table.schedules[0].steps
    assert here.schedules[0].seconds < table.schedules[0].seconds


def test_a_setting_names_another_one_of_its_architecture(start):
    connection = start(KILN_GPU="sm_89")
    assert "L4: 58 multiprocessors" in schedule_of(connection).machine


def test_a_name_that_says_no_figure_is_refused(start):
    with pytest.raises(kiln.InvalidArgument) as caught:
        schedule_of(start(), arch="sm_89+cores4")
    assert caught.value.message.startswith("sm_89+cores4 says cores4 of a GPU, which is no figure of it; write sm_89+sms142+")


def test_a_setting_of_another_architecture_is_refused(start):
    connection = start(KILN_GPU="sm_90+h200")
    message = ("KILN_GPU is sm_90+h200, but a fake device is sm_89; name a GPU of this architecture, as sm_89, or leave it unset")
    assert message in [part["message"] for part in connection.describe()["components"] if not part["ok"]]
    with pytest.raises(kiln.Unsupported) as caught:
        kiln.build(product(), target="cuda", connection=connection)
    assert caught.value.message == message

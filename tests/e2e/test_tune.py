"""Tuning and variants for known sizes, through a real daemon."""

import json
import os
import signal
import subprocess
import threading
import time
import xml.etree.ElementTree

import kiln
import numpy as np
import pytest
from kiln import te
from kiln._service.daemon import find_daemon

KERNEL = """kernel matmul(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
  C[i, j] = sum[k < l](A[i, k] * B[k, j])
}
"""


def matmul(n, l, m, names="ABC"):
    a = te.placeholder((n, l), name=names[0])
    b = te.placeholder((l, m), name=names[1])
    k = te.reduce_axis((0, l), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=names[2])]


def arrays(n, l, m):
    random = np.random.default_rng(5)
    return random.random((n, l), "float32") - 0.5, random.random((l, m), "float32") - 0.5


def notes_of(function):
    return [note for note in function.report()["notes"] if "tuning record" in note]


def force_a_record(connection, tensors, **options):
    """Tunes until some schedule was faster: on a busy machine the first few may not be."""
    for trials in (8, 16, 32, 64):
        result = connection.tune(tensors, trials=trials, progress=False, **options)
        if result.record:
            return result
    pytest.skip("no schedule was faster than the one chosen unmeasured, so there is no record")


def test_a_search_finds_nothing_slower_and_keeps_every_bit(daemon):
    tensors = matmul(96, 100, 120)
    before = daemon.connection.build(tensors)
    a, b = arrays(96, 100, 120)
    expected = before(a, b).numpy()
    result = force_a_record(daemon.connection, tensors)
    assert result.seconds <= result.default_seconds
    assert result.speedup >= 1
    assert result.schedule and all(isinstance(step, str) for step in result.schedule)
    after = daemon.connection.build(tensors)
    assert notes_of(before) == []
    assert len(notes_of(after)) == 1
    assert notes_of(after)[0].startswith(f"schedule from tuning record {result.record}: ")
    assert after.report()["schedule"] == result.schedule
    np.testing.assert_array_equal(after(a, b).numpy(), expected)


def test_a_record_serves_other_names_and_outlives_the_daemon(start):
    first = start()
    result = force_a_record(first.connection, matmul(64, 64, 64))
    other = first.connection.build(matmul(64, 64, 64, names="XYZ"), name="other")
    assert len(notes_of(other)) == 1
    assert notes_of(first.connection.build(matmul(64, 64, 65))) == []
    assert notes_of(first.connection.build(matmul(64, 64, 64), auto="never")) == []
    first.stop()
    second = start(cache=first.cache)
    again = second.connection.build(matmul(64, 64, 64))
    assert notes_of(again)[0].startswith(f"schedule from tuning record {result.record}: ")


def test_a_second_search_goes_on_where_the_first_ended(start):
    first = start()
    tensors = matmul(32, 32, 32)
    one = first.connection.tune(tensors, trials=5, progress=False)
    assert one.end == "trials"
    assert [trial["recorded"] for trial in one.trials] == [False] * 5
    first.stop()
    second = start(cache=first.cache)
    two = second.connection.tune(tensors, trials=5, progress=False)
    recorded = [trial["candidate"] for trial in two.trials if trial["recorded"]]
    assert recorded == [trial["candidate"] for trial in one.trials]
    measured = [trial["candidate"] for trial in two.trials if not trial["recorded"]]
    # Nothing twice but what is a record, which is measured against the default once more.
    assert len(set(measured) & set(recorded)) <= 1


def test_sizes_are_given_by_name_or_shown_by_data(daemon):
    n, l, m = te.var("n"), te.var("l"), te.var("m")
    tensors = matmul(n, l, m)
    with pytest.raises(kiln.InvalidArgument) as error:
        daemon.connection.tune(tensors, name="mm", progress=False)
    assert str(error.value) == (
        "mm is tuned for certain sizes, but n is not given; give each size, or the inputs"
    )
    by_name = daemon.connection.tune(tensors, sizes={n: 40, "l": 50, "m": 60}, trials=2, progress=False)
    assert by_name.end == "trials"
    by_data = daemon.connection.tune(tensors, data=arrays(40, 50, 60), trials=2, progress=False)
    assert any(trial["recorded"] for trial in by_data.trials)  # one shape class, one search


def test_what_has_steps_is_not_tuned(daemon):
    tensors = matmul(32, 32, 32)
    s = te.create_schedule(tensors[2].op)
    s[tensors[2]].parallel(tensors[2].op.axis[0])
    with pytest.raises(kiln.Unsupported) as error:
        daemon.connection.tune(s, tensors, name="mm", progress=False)
    assert str(error.value) == (
        "mm leaves nothing open: every stage has steps, or one way to run; tune measures schedules for "
        "stages without steps"
    )


def test_made_up_inputs_that_stop_a_kernel_are_an_error_with_its_sentence(daemon):
    x = te.placeholder((4, 100), name="X")
    rows = te.placeholder((4000,), "int32", name="rows")
    y = te.compute((4000, 100), lambda i, j: x[rows[i], j], name="Y")
    with pytest.raises(kiln.InvalidArgument) as error:
        daemon.connection.tune([x, rows, y], trials=1, progress=False)
    assert "X" in str(error.value)
    data = [np.ones((4, 100), "float32"), np.zeros(4000, "int32")]
    assert daemon.connection.tune([x, rows, y], data=data, trials=1, progress=False).trials


def test_the_plot_shows_the_search(daemon, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the plot, is not installed")
    path = tmp_path / "search.svg"
    result = daemon.connection.tune(matmul(32, 32, 32), trials=4, progress=False, plot=path)
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    figure = result.plot()
    axes = figure.axes[0]
    assert axes.get_xlabel() == "candidate"
    assert "main: " in axes.get_title()
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"measured", "without tuning"}
    for seconds, unit in ((5e-5, "microseconds"), (5e-3, "milliseconds"), (5.0, "seconds")):
        result.default_seconds = seconds
        assert result.plot().axes[0].get_ylabel() == f"{unit} a run"


def test_progress_is_written_to_stderr(daemon, capsys):
    daemon.connection.tune(matmul(32, 32, 32), name="mm", trials=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "mm" in captured.err and "times as fast" in captured.err


def run_kiln(daemon, *arguments, **options):
    program = os.path.join(os.path.dirname(find_daemon()), "kiln")
    command = [program, *arguments, "--address", daemon.address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_the_command_tunes_a_kernel_file(daemon, tmp_path):
    (tmp_path / "matmul.kiln").write_text(KERNEL)
    sizes = [part for size in ("n=48", "l=64", "m=80") for part in ("--size", size)]
    done = run_kiln(daemon, "tune", "matmul.kiln", *sizes, "--trials", "6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("matmul: 6 candidates measured, ")
    assert "matmul: search among " in done.stderr
    done = run_kiln(daemon, "tune", "matmul.kiln", *sizes, "--trials", "2", "--json", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["end"] == "trials"
    assert sum(trial["recorded"] for trial in answer["measured"]) == 6
    done = run_kiln(daemon, "tune", "matmul.kiln", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: matmul is tuned for certain sizes, but n is not given; give each size, or the inputs\n"
    )


def test_an_interrupt_ends_the_command_and_the_search_soon(daemon, tmp_path):
    (tmp_path / "matmul.kiln").write_text(KERNEL)
    program = os.path.join(os.path.dirname(find_daemon()), "kiln")
    sizes = [part for size in ("n=300", "l=300", "m=300") for part in ("--size", size)]
    process = subprocess.Popen(
        [program, "tune", "matmul.kiln", *sizes, "--address", daemon.address],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    counters = lambda: daemon.connection.describe()["counters"]  # noqa: E731
    deadline = time.monotonic() + 60
    while counters()["tuning_trials"] < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    interrupted = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    assert "you stopped it; what it found stays" in out
    # A candidate that is being compiled or run is ended; 5 s are for a machine with other work.
    assert time.monotonic() - interrupted < 5
    before = counters()["tuning_trials"]
    time.sleep(1)
    assert counters()["tuning_trials"] <= before + 1
    again = daemon.connection.tune(
        kiln.parse_kernels(KERNEL)["matmul"], sizes={"n": 300, "l": 300, "m": 300}, trials=1, progress=False
    )
    assert sum(trial["recorded"] for trial in again.trials) >= 3


def test_a_daemon_that_is_killed_in_the_middle_keeps_what_was_measured(start):
    first = start()
    tensors = matmul(64, 64, 64)
    caught = []

    def search():
        try:
            first.connection.tune(tensors, progress=False)
        except kiln.Error as error:
            caught.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    deadline = time.monotonic() + 60
    watcher = kiln.connect(first.address, default=False)
    while watcher.describe()["counters"]["tuning_trials"] < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    first.process.kill()
    first.process.wait()  # until then it listens
    thread.join(timeout=60)
    assert [type(error) for error in caught] == [kiln.Unavailable]
    second = start(cache=first.cache)
    result = second.connection.tune(tensors, trials=1, progress=False)
    assert sum(trial["recorded"] for trial in result.trials) >= 3


def test_sizes_that_come_back_get_a_kernel_of_their_own_with_the_same_bits(daemon):
    n, l, m = te.var("n"), te.var("l"), te.var("m")
    f = daemon.connection.build(matmul(n, l, m))
    a, b = arrays(33, 47, 65)
    first = f(a, b).numpy()
    counters = lambda: daemon.connection.describe()["counters"]  # noqa: E731
    deadline = time.monotonic() + 60
    while not counters()["specialised_kernels"] and time.monotonic() < deadline:
        for _ in range(10):
            np.testing.assert_array_equal(f(a, b).numpy(), first)
    before = counters()["specialised_runs"]
    for _ in range(5):
        np.testing.assert_array_equal(f(a, b).numpy(), first)
    assert counters()["specialised_runs"] == before + 5
    assert f.report()["specialised"] == ["n=33, l=47, m=65"]
    other = f(*arrays(34, 47, 65)).numpy()
    assert counters()["specialised_runs"] == before + 5
    np.testing.assert_allclose(other, arrays(34, 47, 65)[0] @ arrays(34, 47, 65)[1], rtol=1e-4, atol=1e-5)

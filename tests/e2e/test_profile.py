"""One trace over the command line, the daemon, its compiler, its worker and the device, on one clock."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np

KERNEL = """kernel scale(X: float32[n]) -> (Y: float32[n]) {
  Y[i] = sin(X[i]) * 2
}
"""


def profiled(daemon, folder, *flags):
    kiln = pathlib.Path(os.environ.get("KILN_DAEMON") or shutil.which("kilnd")).with_name("kiln")
    (folder / "scale.kiln").write_text(KERNEL)
    np.save(folder / "x.npy", np.ones(1 << 20, "float32"))
    environment = {**os.environ, "KILN_ADDRESS": daemon.address}
    done = subprocess.run([kiln, "profile", "scale.kiln", "--in", "X=x.npy", *flags],
                          cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_trace_has_all_processes_nested_on_one_clock(daemon, tmp_path):
    shown = profiled(daemon, tmp_path, "--trace", "out.json")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert processes == {"kiln", "kilnd", "kiln-compiler", "kiln-worker"}
    assert len({event["pid"] for event in events}) == 4
    assert daemon.process.pid in {event["pid"] for event in events}
    spans = [event for event in events if event["ph"] == "X"]
    latest = lambda name: [span for span in spans if span["name"] == name][-1]  # noqa: E731
    for outer, inner in [("build", "find scale"), ("find scale", "compile scale"), ("call", "run scale"), ("run scale", "queue"),
                         ("run scale", "call scale"), ("call scale", "kernel scale")]:
        outside, inside = latest(outer), latest(inner)
        assert outside["ts"] <= inside["ts"] + 0.01, (outer, inner)
        assert inside["ts"] + inside["dur"] <= outside["ts"] + outside["dur"] + 0.01, (outer, inner)
    assert latest("kernel scale")["dur"] > 0
    lines = shown.splitlines()
    assert lines[0].split() == ["SPAN", "PROCESS", "PID", "TOOK", "OF", "THE", "CALL"]
    assert lines[-1] == f"{len(spans)} spans in out.json: open it in ui.perfetto.dev or chrome://tracing"


def test_spans_are_json_too(daemon, tmp_path):
    spans = json.loads(profiled(daemon, tmp_path, "--json"))["spans"]
    assert {"connect", "build", "call", "run scale", "kernel scale"} <= {span["name"] for span in spans}

"""Draws the panels of the dashboard (grafana/dashboards/kiln.json) from what a real Prometheus answers to their queries, while
a daemon is called in several ways: docs/dashboard.png.

    KILN_DAEMON=build/release/bin/kilnd build/venv/bin/python deploy/compose/draw_dashboard.py docs/dashboard.png

Needs prometheus (Debian's) and matplotlib; Grafana is none of it, so frames and colours are not Grafana's.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

import kiln
from kiln import te

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_OF_A_SCRAPE = 1


def panels():
    return json.loads((HERE / "grafana" / "dashboards" / "kiln.json").read_text())["panels"]


class Prometheus:
    """One that scrapes the service at `metrics` (HOST:PORT), with a database in `folder`."""

    def __init__(self, folder, metrics):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{taken.getsockname()[1]}"
        folder = pathlib.Path(folder)
        settings = (HERE / "prometheus.yml").read_text()
        settings = re.sub(r"scrape_interval: \S+", f"scrape_interval: {SECONDS_OF_A_SCRAPE}s", settings)
        (folder / "prometheus.yml").write_text(settings.replace("kiln:7412", metrics))
        self._log = open(folder / "prometheus.log", "wb")
        self._process = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self._address}"], stdout=self._log, stderr=self._log)
        while not self._answers():
            if self._process.poll() is not None:
                raise SystemExit((folder / "prometheus.log").read_text())
            time.sleep(0.1)

    def _answers(self):
        with contextlib.suppress(urllib.error.URLError):
            return urllib.request.urlopen(f"http://{self._address}/-/ready").status == 200
        return False

    def _ask(self, what, **parameters):
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url) as answered:
            return json.load(answered)["data"]["result"]

    def now(self, expression):
        """The values of an expression's series."""
        return [float(series["value"][1]) for series in self._ask("query", query=expression)]

    def over_time(self, expression, seconds, step=SECONDS_OF_A_SCRAPE):
        """The series of an expression: (labels, times, values)."""
        end = time.time()
        found = self._ask("query_range", query=expression, start=end - seconds, end=end, step=step)
        return [(series["metric"], *zip(*((float(when), float(value)) for when, value in series["values"])))
                for series in found]

    def end(self):
        self._process.terminate()
        self._process.wait()
        self._log.close()


@contextlib.contextmanager
def daemon(folder):
    """A daemon with metrics: its address for clients, and that for Prometheus."""
    process = subprocess.Popen(
        [os.environ["KILN_DAEMON"], "--listen", "127.0.0.1:0", "--cache-dir", f"{folder}/cache", "--metrics-listen",
         "127.0.0.1:0", "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[-1]
        metrics = process.stdout.readline().split()[-1].removeprefix("http://").rstrip("/")
        yield address, metrics
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def client(address, over, seed):
    """Calls of a small and a large kernel, with pauses; now and then a new kernel, a large array, or a mistake."""
    choices = random.Random(seed)
    with kiln.connect(address, default=False) as connection:
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        add = connection.build([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")], name="add")
        a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
        k = te.reduce_axis((0, n), name="k")
        product = connection.build([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")],
                                   name="product")
        x, square = np.ones(1 << 14, "float32"), connection.array(np.ones((256, 256), "float32"))
        while not over.wait(choices.expovariate(20)):
            kind = choices.random()
            if kind < 0.6:
                add(x)
            elif kind < 0.9:
                product(square, square)
            elif kind < 0.95:
                connection.array(np.zeros(1 << 20, "float32")).numpy()
            elif kind < 0.98:
                number = choices.randrange(60)
                connection.build([A, te.compute((n,), lambda i: A[i] * float(number), name="B")], name=f"times_{number}")(x)
            else:
                with contextlib.suppress(kiln.InvalidArgument):
                    add(square)


@contextlib.contextmanager
def load(address, clients=4):
    over = threading.Event()
    threads = [threading.Thread(target=client, args=(address, over, seed)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def in_unit(value, unit):
    """As Grafana writes a value of this unit."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"
    factor, behind = {"bytes": (1024, "iB"), "Bps": (1000, "B/s"), "reqps": (1000, " req/s"), "ops": (1000, " ops/s")}.get(
        unit, (1000, ""))
    for power in ("", "K", "M", "G"):
        if abs(value) < factor:
            break
        value /= factor
    return f"{value:.3g} {power}{behind}".replace(" iB", " B").replace("  ", " ").strip()


def label_of(target, labels):
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), target["legendFormat"])


def draw_panel(figure, place, panel, answers):
    axes = figure.add_subplot(place)
    axes.set_title(panel["title"], loc="left", fontsize=7 if panel["type"] == "stat" else 9)
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    if panel["type"] == "stat":
        axes.axis("off")
        values = [value for _, series in answers for *_, value in series]
        axes.text(0.5, 0.4, in_unit(values[-1][-1], unit) if values else "no data", ha="center", va="center", fontsize=18)
        return
    for target, found in answers:
        for labels, times, values in found:
            minutes = (np.array(times) - max(times)) / 60
            axes.plot(minutes, values, label=label_of(target, labels), linewidth=1)
    axes.yaxis.set_major_formatter(lambda value, _: in_unit(value, unit))
    axes.tick_params(labelsize=7)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize=6, loc="upper left")


def draw(prometheus, seconds, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    all_panels = panels()
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in all_panels)
    figure = pyplot.figure(figsize=(15, rows * 0.42), layout="constrained")
    grid = figure.add_gridspec(rows, 24)
    for panel in all_panels:
        at = panel["gridPos"]
        answers = [(target, prometheus.over_time(target["expr"], seconds)) for target in panel["targets"]]
        draw_panel(figure, grid[at["y"]:at["y"] + at["h"], at["x"]:at["x"] + at["w"]], panel, answers)
    figure.supxlabel("minutes", fontsize=8)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("--seconds", type=float, default=180)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder, daemon(folder) as (address, metrics):
        prometheus = Prometheus(folder, metrics)
        try:
            with load(address):
                time.sleep(given.seconds)
                draw(prometheus, given.seconds, given.picture)
        finally:
            prometheus.end()


if __name__ == "__main__":
    main()

"""A real Prometheus answers every query of the dashboard with what a daemon under load tells it."""

import sys

from deployed import DEPLOY, needs
from fleets import wait_until

sys.path.insert(0, str(DEPLOY / "compose"))
import draw_dashboard  # noqa: E402


def test_every_panel_shows_something(programs, short_folder, monkeypatch):
    needs("prometheus")
    monkeypatch.setenv("KILN_DAEMON", str(programs / "bin" / "kilnd"))
    asked = {(panel["title"], target["expr"]) for panel in draw_dashboard.panels() for target in panel["targets"]}
    assert len(asked) >= 15
    with draw_dashboard.daemon(short_folder) as (address, metrics):
        prometheus = draw_dashboard.Prometheus(short_folder, metrics)
        try:
            with draw_dashboard.load(address, clients=2):
                wait_until(lambda: not [title for title, expression in asked if not prometheus.now(expression)], seconds=120)
        finally:
            prometheus.end()


def test_values_are_written_in_their_units():
    written = draw_dashboard.in_unit
    assert [written(0.758, "percentunit"), written(0.0042, "s"), written(1.5, "s")] == ["75.8 %", "4.2 ms", "1.5 s"]
    assert [written(512, "bytes"), written(10.4 * 2**20, "bytes")] == ["512 B", "10.4 MiB"]
    assert [written(68.1, "reqps"), written(1.2e6, "Bps"), written(4, "short")] == ["68.1 req/s", "1.2 MB/s", "4"]

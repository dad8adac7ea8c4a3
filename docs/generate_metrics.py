"""Writes docs/metrics.md from server/metrics/metrics.def.

    python3 docs/generate_metrics.py
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/metrics.md"

HEAD = """# Metrics

`kilnd --metrics-listen HOST:PORT` serves `/metrics` in Prometheus' text format. Times are in seconds, sizes in bytes, and what ends in
`_total` only grows. A histogram has `_bucket`, `_sum` and `_count`; its bounds are half decades from 1 us to 300 s. This page is made by
`docs/generate_metrics.py` from `server/metrics/metrics.def`.

| metric | kind | labels | what it says |
|---|---|---|---|
"""

TAIL = """
Some questions, in PromQL:

| | |
|---|---|
| calls a second, by method | `sum by (method) (rate(kiln_calls_total[5m]))` |
| share of calls that fail, without those that are refused by design | `sum(rate(kiln_calls_total{status=~"INTERNAL\\|UNKNOWN\\|UNAVAILABLE\\|DATA_LOSS"}[5m])) / sum(rate(kiln_calls_total[5m]))` |
| the wait for a device that 99 of 100 calls stay below | `histogram_quantile(0.99, sum by (le, queue) (rate(kiln_queue_seconds_bucket[5m])))` |
| how busy a device is, 0 to 1 | `rate(kiln_kernel_seconds_sum[5m])` |
| share of kernels that had to be compiled | `sum(rate(kiln_cache_misses_total[5m])) / (sum(rate(kiln_cache_misses_total[5m])) + sum(rate(kiln_cache_hits_total[5m])))` |
| restarts of workers in an hour | `increase(kiln_worker_restarts_total[1h])` |
"""


def rows():
    text = (ROOT / "server/metrics/metrics.def").read_text()
    for _, kind, name, labels, help_text in re.findall(
            r'^METRIC\((\w+), (\w+), "([^"]+)", "([^"]*)", "([^"]+)"\)$', text, re.M):
        listed = ", ".join(f"`{label}`" for label in labels.split(",") if label)
        yield f"| `{name}` | {kind.lower()} | {listed} | {help_text} |\n"


def page():
    return HEAD + "".join(rows()) + TAIL


if __name__ == "__main__":
    PAGE.write_text(page())

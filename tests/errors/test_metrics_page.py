"""The page of metrics is what the table says."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_of_metrics_is_made_of_the_table():
    path = ROOT / "docs/generate_metrics.py"
    specification = importlib.util.spec_from_file_location("generate_metrics", path)
    generate = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generate)
    assert generate.page() == (ROOT / "docs/metrics.md").read_text(), "python3 docs/generate_metrics.py"
    table = (ROOT / "server/metrics/metrics.def").read_text()
    assert len(list(generate.rows())) == table.count("\nMETRIC("), "a row that is not read"

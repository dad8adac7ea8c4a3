"""The page of errors is what the catalogue says."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_of_errors_is_made_of_the_catalogue():
    path = ROOT / "docs/generate_errors.py"
    specification = importlib.util.spec_from_file_location("generate_errors", path)
    generate = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generate)
    assert generate.page() == (ROOT / "docs/errors.md").read_text(), "python3 docs/generate_errors.py"

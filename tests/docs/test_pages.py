"""The documentation does what it says: every block of Python runs and prints what the page prints, every link has
a target, and the site is built without a warning."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# Made from tables and catalogues, with tests of their own.
GENERATED = {"errors.md", "operators.md"}
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")


def name_of(page):
    return str(page.relative_to(ROOT))


def with_python(pages):
    return [page for page in pages if page.name not in GENERATED and "```python" in page.read_text()]


@pytest.mark.parametrize("page", with_python(PAGES), ids=name_of)
def test_python_of_the_page_runs(page, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "error::SyntaxWarning"}
    ran = subprocess.run([sys.executable, ROOT / "tests/docs/run_page.py", page], cwd=tmp_path, env=environment,
                         capture_output=True, text=True, timeout=300)  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(ran.stdout.split()[0]) > 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_have_targets(page):
    for target, heading in LINK.findall(prose_of(page)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{name_of(page)} links to {target}, which is not there"
        if heading and path.suffix == ".md":
            assert heading[1:] in anchors_of(path), f"{name_of(page)} links to {target}{heading}, which is no heading"


def prose_of(page):
    """The page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)


def anchors_of(page):
    """Those of a page's headings, as GitHub makes them, and those that it names itself."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return anchors | set(re.findall(r'<a id="([^"]+)">', page.read_text()))


def test_the_site_is_built_without_a_warning(tmp_path):
    """Warnings end a strict build; a page that the site's list lacks is one."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path], cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert built.returncode == 0, built.stderr
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not (tmp_path / page).exists()} == set()
    assert "reduce_axis" in (tmp_path / "search/search_index.json").read_text()

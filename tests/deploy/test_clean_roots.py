"""The first use on a clean Debian: the transcripts of docs/installing.md are what a newcomer sees today."""

import os
import re

import pytest
from deployed import ROOT, needs, run

SCRIPTS = ROOT / "tests" / "deploy" / "clean_root"
PAGE = (ROOT / "docs" / "installing.md").read_text()
WAYS = {"pip": ("bwrap", "mmdebstrap"), "debian": ("bwrap", "mmdebstrap", "systemd-nspawn"),
        "image": ("bwrap", "mmdebstrap", "buildah", "podman", "ip")}


@pytest.mark.parametrize("way", WAYS)
def test_a_newcomer_gets_a_result(way, programs):
    if os.environ.get("KILN_LONG") != "1":
        pytest.skip("makes a root and fetches packages; KILN_LONG=1 runs it")
    for tool in WAYS[way]:
        needs(tool)
    printed = run(SCRIPTS / "transcript.sh", "--build", programs, way, timeout=1800)
    assert re.search(r"^# .* the first result: [\d.]+ s$", printed, re.M), printed


def test_the_page_shows_what_the_scripts_type():
    typed = {line for script in SCRIPTS.glob("*.sh")
             for line in re.findall(r"""^(?:  \w+\) )?typed ['"](.*)['"](?: ;;)?$""", script.read_text(), re.M)}
    assert len(typed) > 15
    shown = [line for line in re.findall(r"^\$ (.*?)    # [\d.]+ s$", PAGE, re.M)]
    assert len(shown) > 12

    def pattern(line):
        """What is the run's own, such as an address, stands as $NAME in a script."""
        return re.sub(r"\\\$\d|\\\$host", ".*", re.escape(line.replace('\\"', '"').replace("\\$", "$")))

    for line in shown:
        assert any(re.fullmatch(pattern(each), line) for each in typed), line

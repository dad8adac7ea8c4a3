"""The page of the daemon has every flag and every setting of its file, and none that is not there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = (ROOT / "server/config.cc").read_text()
PAGE = (ROOT / "docs/service.md").read_text()


def settings_of_the_source():
    part = SOURCE[SOURCE.index("setters(Config& config)") :]
    own = set(re.findall(r'^      \{"([\w.-]+)",', part[: part.index("\n}\n")], re.M))
    # Of a tenant's quota, which all have and each may have of its own.
    quota = re.findall(r'^      \{prefix \+ "([\w-]+)",', SOURCE, re.M)
    return own | {prefix + name for name in quota for prefix in ("limits.tenant-", "tenants.alice.")}


def flags_of_the_source():
    return set(re.findall(r'app\.add_(?:option|flag)\("--([\w-]+)"', SOURCE))


def flags_of_the_page():
    rows = re.findall(r"^\| ((?:`--[\w-]+`(?:, )?)+) \|", PAGE, re.M)
    return {flag for row in rows for flag in re.findall(r"--([\w-]+)", row)}


def settings_of_the_page():
    found = set()
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.S):
        table = ""
        for line in block.splitlines():
            header, setting = re.match(r"\[([\w.-]+)\]", line), re.match(r"([\w-]+) *=", line)
            table = f"{header[1]}." if header else table
            found |= {table + setting[1]} if setting else set()
    return found


def test_every_flag_has_a_row():
    assert flags_of_the_page() == flags_of_the_source() - {"config"}


def test_every_setting_of_the_file_is_shown():
    with_flags = {name for name in settings_of_the_source() if "." not in name}
    assert with_flags == flags_of_the_source() - {"config"}
    assert settings_of_the_page() - with_flags == settings_of_the_source() - with_flags
    assert len(settings_of_the_page()) > 15

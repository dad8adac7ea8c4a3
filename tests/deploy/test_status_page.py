"""The status page, as a browser shows it."""

import re
import subprocess
import tempfile

import numpy as np
import pytest
from deployed import needs, run

import kiln
from kiln import te


@pytest.fixture
def page(programs):
    """The address of the page of a daemon that was used, and was used wrongly."""
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder, open(f"{folder}/log", "wb") as log:
        process = subprocess.Popen(
            [programs / "bin" / "kilnd", "--listen", f"unix:{folder}/kilnd.sock", "--cache-dir", f"{folder}/cache",
             "--metrics-listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout.readline().startswith("listening on ")
        address = re.fullmatch(r"metrics on (http://127\.0\.0\.1:\d+/)\n", process.stdout.readline())[1]
        with kiln.connect(f"unix:{folder}/kilnd.sock", default=False) as connection:
            A = te.placeholder((4,), name="A")
            f = connection.build([A, te.compute((4,), lambda i: A[i] + 1.0, name="B")], name="add")
            f(np.zeros(4, "float32"))
            with pytest.raises(kiln.InvalidArgument):
                f(np.zeros((4, 4), "float32"))
            yield address
        process.terminate()
        assert process.wait(timeout=60) == 0
        process.stdout.close()


def test_the_page_in_a_browser(page, tmp_path):
    browser = [needs("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
               f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=2000"]
    picture = tmp_path / "page.png"
    run(*browser, "--window-size=1200,1200", f"--screenshot={picture}", page, timeout=120)
    assert picture.stat().st_size > 20_000  # an empty one has 5 kB
    done = subprocess.run([*browser, "--dump-dom", page], capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr  # nothing was refused or is wrong
    text = re.sub(r"<[^>]+>", " ", done.stdout)
    assert re.search(r"kilnd \S+ on unix:", text)
    assert re.search(r"kernels run\s+1\b", text)
    assert re.search(r"cpu:0\s+ready", text)
    assert re.search(r"compiler\s+1\b", text)
    assert "argument A of add has 2 dimensions, but must have 1" in text
    for element in ("script", "img", "link", "iframe"):
        assert f"<{element}" not in done.stdout

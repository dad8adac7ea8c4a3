"""What a terminal shows of long builds and uploads."""

import io
import sys
import threading

import pytest

from kiln._base import waiting


class Screen(io.StringIO):
    """A terminal, and an event when something was written to it."""

    def __init__(self, terminal=True):
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self):
        return self.terminal

    def write(self, text):
        super().write(text)
        self.written.set()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(waiting, "AFTER", 0.0)


def test_says_what_is_waited_for_and_takes_it_back(impatient, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    with waiting.Waiting("compiling f"):
        assert screen.written.wait(60)
    assert screen.getvalue().startswith("\r\x1b[Kcompiling f 0 s")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_what_is_quick_says_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.setattr(waiting, "AFTER", 3600.0)
    with waiting.Waiting("compiling f"):
        pass
    assert screen.getvalue() == ""


def test_a_log_gets_nothing(impatient, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen(terminal=False))
    with waiting.Waiting("compiling f"):
        assert not screen.written.wait(0.1)
    assert screen.getvalue() == ""


def test_ends_with_an_error(impatient, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    with pytest.raises(ValueError), waiting.Waiting("uploading 64 MB"):
        screen.written.wait(60)
        raise ValueError
    assert screen.getvalue().endswith("\r\x1b[K")

"""Expecting errors, whole."""

import pytest


def expect(kind, message, action):
    """`action()` raises exactly this kind with exactly this message; returns the error."""
    with pytest.raises(kind) as caught:
        action()
    assert type(caught.value) is kind
    assert caught.value.message == message
    return caught.value

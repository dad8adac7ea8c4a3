"""What tests of kernels use."""

import numpy as np


def _host(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def assert_allclose(actual, desired, rtol=1e-7, atol=0.0, **options):
    """numpy's assert_allclose, with its default tolerance; arrays of a device are fetched."""
    np.testing.assert_allclose(_host(actual), _host(desired), rtol=rtol, atol=atol, **options)


__all__ = ["assert_allclose"]

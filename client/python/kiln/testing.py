"""What tests of kernels use."""

import functools
import sys
import unittest

import numpy as np

from . import runtime
from ._service.device import device as _device
from .target import Target as _Target

_TARGETS = ("llvm", "cuda")


def _host(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def assert_allclose(actual, desired, rtol=1e-7, atol=0.0, **options):
    """numpy's assert_allclose, with its default tolerance; arrays of a device are fetched."""
    np.testing.assert_allclose(_host(actual), _host(desired), rtol=rtol, atol=atol, **options)


def device_enabled(target):
    """Whether the daemon has a device that is ready for the target."""
    return runtime.enabled(target.name if isinstance(target, _Target) else target)


def enabled_targets():
    """(target, device) for each target that the daemon has a device for."""
    return [(target, _device(target, 0)) for target in _TARGETS if device_enabled(target)]


def _skip(reason):
    raise unittest.SkipTest(reason)


def _requires(target):
    def decorator(*args):
        if not args:  # @requires_gpu() and @requires_gpu are both in use
            return decorator
        (function,) = args

        @functools.wraps(function)
        def test(*values, **named):
            if not device_enabled(target):
                _skip(f"the daemon has no device for {target}")
            return function(*values, **named)

        return test

    decorator.__name__ = decorator.__qualname__ = f"requires_{target}"
    decorator.__doc__ = f"A test that is skipped where the daemon has no device for {target}."
    return decorator


requires_llvm = requires_cpu = _requires("llvm")
requires_cuda = requires_gpu = _requires("cuda")


def uses_gpu(*args):
    """Marks a test that uses a GPU where there is one; it runs anyway."""
    return args[0] if args else uses_gpu


def parametrize_targets(*args):
    """A test that runs once for each target, of those named or of all, that has a device."""
    if len(args) == 1 and callable(args[0]):
        return parametrize_targets()(args[0])

    def decorator(function):
        @functools.wraps(function)
        def test():
            chosen = [t for t in args or _TARGETS if device_enabled(t)]
            if not chosen:
                _skip(f"the daemon has no device for {', '.join(args)}")
            for target in chosen:
                function(target, _device(target, 0))

        del test.__wrapped__  # pytest would look for fixtures by the parameters of `function`
        return test

    return decorator


def parametrize(*args, **kwargs):
    """pytest.mark.parametrize."""
    import pytest  # which only tests have

    return pytest.mark.parametrize(*args, **kwargs)


def parameter(*values, ids=None):
    """A fixture with these values, by the name it is assigned to."""
    import pytest  # which only tests have

    @pytest.fixture(params=values, ids=ids)
    def value(request):
        return request.param

    return value


def check_numerical_grads(function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1):
    """Compares gradients with what `function` of the inputs, a number, changes by when one element of them does."""
    given = [np.array(_host(value), dtype="float64") for value in input_values]
    for number, (values, gradient) in enumerate(zip(given, map(_host, grad_values))):
        found = np.zeros(values.shape)
        for place in np.ndindex(*values.shape):
            ends = []
            for step in (delta, -delta):
                moved = values.copy()
                moved[place] += step
                inputs = [*given[:number], moved, *given[number + 1 :]]
                ends.append(float(function(*(x.astype(_host(old).dtype) for x, old in zip(inputs, input_values)))))
            found[place] = (ends[0] - ends[1]) / (2 * delta)
        # An element that is small beside the others is compared with them.
        scale = abs(found).mean() if found.size else 0.0
        np.testing.assert_allclose(gradient, found, rtol=rtol, atol=atol + rtol * scale, err_msg=f"gradient of input {number}")


def main():
    """Runs the tests of the file that calls it."""
    import pytest  # which only tests have

    file = sys._getframe(1).f_globals.get("__file__")
    sys.exit(pytest.main([file, *sys.argv[1:]]))


__all__ = [
    "assert_allclose", "check_numerical_grads", "device_enabled", "enabled_targets", "main", "parameter",
    "parametrize", "parametrize_targets", "requires_cpu", "requires_cuda", "requires_gpu", "requires_llvm", "uses_gpu",
]  # fmt: skip

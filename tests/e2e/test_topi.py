"""Every operator of kiln.topi against numpy, or against a reference written out."""

import numpy as np
import pytest
import topi_cases
import topi_model_cases
import topi_nd_cases
import topi_nn_cases
import topi_places_cases
import topi_signal_cases

from kiln import te, topi

CASES = [
    case for table in (topi_cases, topi_places_cases, topi_nn_cases, topi_nd_cases, topi_model_cases, topi_signal_cases)
    for case in table.CASES
]

# What reads at indices that take a proof; each of the others has indices of the same kinds.
_PROVED = ("nn.conv2d_n", "nn.pool2d", "nn.adaptive", "reshape", "concatenate", "strided", "tile", "take c")

# What has no numbers of its own to compare.
_OTHERS = {"cuda", "generic", "nn", "random", "tag", "util", "utils", "x86", "zeros", "ones"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_gives_what_numpy_gives(shared_daemon, case):
    inputs = [te.placeholder(x.shape, str(x.dtype), f"X{i}") for i, x in enumerate(case.inputs)]
    kernel = shared_daemon.build([*inputs, case.build(*inputs)])
    if case.name.startswith(_PROVED):
        assert kernel.report()["guards"] == 0
    result = kernel(*case.inputs).numpy()
    expected = np.asarray(case.expected(*case.inputs))
    assert result.shape == expected.shape
    if expected.dtype.kind in "biu":
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result, expected, rtol=case.rtol, atol=case.atol)


def _covered(module, prefix):
    """The operators that some case names, or whose other name a case has."""
    functions = {}
    for name in module.__all__:
        functions.setdefault(getattr(module, name), []).append(name)
    words = {word for case in CASES for word in case.name.split() if word.startswith(prefix)}
    return {
        name for names in functions.values() for name in names
        if any(prefix + other in words for other in names)
    }


def test_every_operator_has_a_case():
    assert set(topi.__all__) - _OTHERS - _covered(topi, "") == set()
    assert set(topi.nn.__all__) - _covered(topi.nn, "nn.") == set()
    assert set(topi.random.__all__) - {"threefry_test_wrapping"} - _covered(topi.random, "random.") == set()

"""How the examples print what they found."""

import numpy as np


def show(title, f, result, expected, rtol=1e-7):
    """Compares with numpy, and says how close, where the kernel came from and what it took."""
    result, expected = np.asarray(result), np.asarray(expected)
    np.testing.assert_allclose(result, expected, rtol=rtol)
    scale = np.maximum(np.abs(expected), np.finfo(result.dtype).tiny)
    apart = float(np.max(np.abs(result - expected) / scale)) if result.size else 0.0
    timings = f.timings
    print(f"{title}")
    print(f"  result   {np.array2string(result.ravel()[:5], precision=4)} ... shape {result.shape}")
    print(f"  numpy    agrees; largest relative difference {apart:.1e}")
    print(f"  kernel   from {timings['cache']}, ran {timings['kernel'] * 1e6:,.0f} us")

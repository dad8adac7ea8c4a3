"""How the examples print what they found."""

import numpy as np


def built(f):
    """Says where a kernel came from; returns it."""
    timings = f.timings
    took = f", {timings['compile'] * 1e3:,.0f} ms" if timings["cache"] == "compiled" else ""
    print(f"kernel {f.entry_name}: from {'the compiler' if took else timings['cache']}{took}")
    return f


def show(title, f, result, expected, rtol=1e-7):
    """Compares with numpy, and says how close it is and what the call took."""
    result, expected = np.asarray(result), np.asarray(expected)
    np.testing.assert_allclose(result, expected, rtol=rtol)
    scale = np.maximum(np.abs(expected), np.finfo(result.dtype).tiny)
    apart = float(np.max(np.abs(result - expected) / scale)) if result.size else 0.0
    timings = f.timings
    print(f"{title}")
    print(f"  result   {np.array2string(result.ravel()[:5], precision=4)} ... shape {result.shape}")
    print(f"  numpy    agrees; largest relative difference {apart:.1e}")
    parts = ("queue", "upload", "kernel", "download")
    inside = ", ".join(f"{part} {timings[part] * 1e6:,.0f}" for part in parts)
    print(f"  timings  {inside} us")

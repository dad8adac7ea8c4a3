"""The plot of a search."""

from .._base.error import unsupported


def plot(result, path=None):
    """Each candidate by its time, those that failed below the axis, and the fastest so far."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise unsupported("MATPLOTLIB", "a plot needs matplotlib; pip install matplotlib") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    unit, scale = _unit(result.default_seconds)
    measured = [t for t in result.trials if not t["failure"]]
    failed = [t for t in result.trials if t["failure"]]
    for recorded, label, color in ((False, "measured", "tab:blue"), (True, "of an earlier search", "tab:gray")):
        points = [t for t in measured if t["recorded"] == recorded]
        if points:
            numbers = [t["number"] for t in points]
            axes.scatter(numbers, [t["seconds"] * scale for t in points], s=14, color=color, label=label)
    if result.trials:
        numbers = [t["number"] for t in result.trials]
        best = [t["best"] * scale for t in result.trials]
        axes.step(numbers, best, where="post", color="tab:orange", label="fastest so far")
    axes.axhline(result.default_seconds * scale, color="black", linestyle="--", linewidth=1, label="without tuning")
    if failed:
        axes.plot(
            [t["number"] for t in failed], [0.02] * len(failed), "x", color="tab:red", markersize=5,
            transform=axes.get_xaxis_transform(), label="failed",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, position: f"{value:g}")
    axes.set_xlabel("candidate")
    axes.set_ylabel(f"{unit} a run")
    axes.set_title(f"{result.name}: {result.speedup:.2f} times as fast as without tuning")
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    if path is not None:
        figure.savefig(path)
    return figure


def _unit(seconds):
    """The name of a unit in which the time is easy to read, and how many of it a second has."""
    if seconds < 1e-3:
        return "microseconds", 1e6
    return ("milliseconds", 1e3) if seconds < 1 else ("seconds", 1.0)

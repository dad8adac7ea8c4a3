"""Tables and a plot of what compare.py has measured."""

import math


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def best_other(results):
    """The name of the fastest peer but Kiln, or None."""
    rated = {name: row["rate"] for name, row in results.items() if name != "kiln" and "rate" in row}
    return max(rated, key=rated.get, default=None)


def ratio(results):
    """Kiln's speed over that of the fastest peer; None where one of them is missing."""
    best = best_other(results)
    if best is None or "rate" not in results.get("kiln", {}):
        return None
    return results["kiln"]["rate"] / results[best]["rate"]


def line(workload, results):
    """One workload, while the rest is being measured."""
    cells = [
        f"{name} {number(row['rate'])} (±{row['spread']:.0%})" if "rate" in row else f"{name}: {row['error']}"
        for name, row in results.items()
    ]
    compared = ratio(results)
    shown = "" if compared is None else f"  kiln/best {compared:.2f}"
    return f"{workload.name} [{workload.unit}] {', '.join(cells)}{shown}"


def _peak(workload, limits):
    return limits["fma_gflops" if workload.unit == "GFLOP/s" else "triad_gbs"]


def markdown(data, groups):
    """A table for each number of threads and group: Kiln, the best peer, and all others."""
    text = []
    for threads, results in data["results"].items():
        limits = data["limits"][threads]
        text.append(
            f"### {threads} thread{'s' if threads != '1' else ''}\n\nThis machine: {number(limits['fma_gflops'])} "
            f"GFLOP/s of fused multiply-adds, {number(limits['triad_gbs'])} GB/s of streaming triad.\n"
        )
        names = list(dict.fromkeys(name for row in results.values() for name in row))
        others = [name for name in names if name != "kiln"]
        text.append(f"| | unit | Kiln | of peak | Kiln / best peer | {' | '.join(others)} |")
        text.append("|---" * (len(others) + 5) + "|")
        for group in groups.values():
            for workload in group:
                if workload.name not in results:
                    continue
                row = results[workload.name]
                compared = ratio(row)
                kiln = row.get("kiln", {})
                share = kiln["rate"] / _peak(workload, limits) if "rate" in kiln else None
                cells = [
                    workload.name, workload.unit, _cell(kiln),
                    "" if share is None else f"{share:.0%}",
                    "" if compared is None else f"**{compared:.2f}**",
                    *(_cell(row.get(name, {})) for name in others),
                ]  # fmt: skip
                text.append(f"| {' | '.join(cells)} |")
        text.append("")
    if data["missing"]:
        text.append(f"Not installed: {', '.join(data['missing'])}.\n")
    return "\n".join(text)


def _cell(row):
    return number(row["rate"]) if "rate" in row else row.get("error", "")[:40]


def summary(data):
    lines = []
    for threads, results in data["results"].items():
        ratios = {name: ratio(row) for name, row in results.items()}
        ratios = {name: value for name, value in ratios.items() if value is not None}
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        behind = sum(value < 1 for value in ratios.values())
        worst = min(ratios, key=ratios.get)
        lines.append(
            f"{threads} threads: Kiln / best peer has the geometric mean {mean:.2f} over {len(ratios)} workloads, is below "
            f"1 in {behind}, and least in {worst} ({ratios[worst]:.2f})"
        )
    return "\n".join(lines)


def plot(data, groups, path):
    """Kiln's speed over the best peer's, a bar a workload; left out where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return
    names = [workload.name for group in groups.values() for workload in group]
    threads = list(data["results"])
    names = [n for n in names if any(ratio(data["results"][t].get(n, {})) for t in threads)]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.3 * len(names)), layout="constrained")
    height = 0.8 / max(len(threads), 1)
    for k, thread in enumerate(threads):
        values = [ratio(data["results"][thread].get(name, {})) or math.nan for name in names]
        places = [i + (k - (len(threads) - 1) / 2) * height for i in range(len(names))]
        axes.barh(places, values, height, label=f"{thread} thread{'s' if thread != '1' else ''}")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("speed of Kiln over that of the fastest peer of the same run")
    axes.legend()
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)

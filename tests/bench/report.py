"""Tables and a plot of what compare.py has measured."""

import math

from workloads import BARS, PAST_CACHES, TRIAD_BARS


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
    """For each number of threads a table of workloads (Kiln, the best peer, all others) and one of groups."""
    text = []
    for threads, results in data["results"].items():
        limits = data["limits"][threads]
        text.append(
            f"### {threads} thread{'s' if threads != '1' else ''}\n\nThis machine: {number(limits['fma_gflops'])} "
            f"GFLOP/s of fused multiply-adds, {number(limits['triad_gbs'])} GB/s of streaming triad.\n"
        )
        text += [*_workloads(results, limits, groups), "", *_groups(results, limits, groups), ""]
    if data["missing"]:
        text.append(f"Not installed: {', '.join(data['missing'])}.\n")
    return "\n".join(text)


def least(group, row, limits):
    """The ratio that a workload of a group is to reach; more for rows that no peer brings near to what memory can do."""
    best = best_other(row)
    if group == "rows" and best and row[best]["rate"] < 0.6 * limits["triad_gbs"]:
        return 1.5
    return BARS[group][0]


def _workloads(results, limits, groups):
    names = list(dict.fromkeys(name for row in results.values() for name in row))
    others = [name for name in names if name != "kiln"]
    yield f"| | unit | Kiln | of peak | in a call | Kiln / best peer | {' | '.join(others)} |"
    yield "|---" * (len(others) + 6) + "|"
    for group, workloads in groups.items():
        for workload in workloads:
            if workload.name not in results:
                continue
            row = results[workload.name]
            compared, kiln = ratio(row), row.get("kiln", {})
            share = kiln["rate"] / _peak(workload, limits) if "rate" in kiln else None
            cells = [
                workload.name, workload.unit, _cell(kiln),
                "" if share is None else _share(share, group, workload),
                f"{kiln['in_a_call'] / kiln['seconds']:.2f}" if "in_a_call" in kiln else "",
                "" if compared is None else _judged(compared, least(group, row, limits)),
                *(_cell(row.get(name, {})) for name in others),
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"


def _groups(results, limits, groups):
    """The ratios of each group beside what it is to reach; what falls short is bold."""
    yield "| Kiln / best peer | workloads | mean | to reach | least | to reach | short of it |"
    yield "|---|---|---|---|---|---|---|"
    for group, workloads in groups.items():
        rows = [results.get(workload.name, {}) for workload in workloads]
        rows = [row for row in rows if ratio(row) is not None]
        if not rows:
            continue
        bar, mean = BARS[group]
        ratios = [ratio(row) for row in rows]
        short = sum(ratio(row) < least(group, row, limits) for row in rows)
        yield (
            f"| {group} | {len(ratios)} | {_judged(_mean(ratios), mean)} | {mean} | {_judged(min(ratios), bar)} | "
            f"{bar} | {short} |"
        )


def _share(share, group, workload):
    """Of the machine's peak; bold where memory alone should set the pace and does not."""
    is_memory = workload.unit == "GB/s" and workload.work >= PAST_CACHES and group in TRIAD_BARS
    return f"**{share:.0%}**" if is_memory and share < TRIAD_BARS[group] else f"{share:.0%}"


def _judged(value, bar):
    return f"**{value:.2f}**" if value < bar else f"{value:.2f}"


def _mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _cell(row):
    return number(row["rate"]) if "rate" in row else row.get("error", "")[:40]


def summary(data):
    lines = []
    for threads, results in data["results"].items():
        ratios = {name: ratio(row) for name, row in results.items()}
        ratios = {name: value for name, value in ratios.items() if value is not None}
        if not ratios:
            continue
        mean = _mean(ratios.values())
        behind = sum(value < 1 for value in ratios.values())
        worst = min(ratios, key=ratios.get)
        lines.append(
            f"{threads} thread{'s' if threads != '1' else ''}: Kiln / best peer has the geometric mean {mean:.2f} over {len(ratios)} workloads, is below "
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
    threads = list(data["results"])
    places, ticks, place = {}, [], 0.0
    for group, workloads in groups.items():
        names = [w.name for w in workloads if any(ratio(data["results"][t].get(w.name, {})) for t in threads)]
        for name in names:
            places[name] = place
            ticks.append(name if len(name) < 64 else name[:62] + " ...")
            place += 1
        place += 0.6 if names else 0  # groups stand apart
    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.3 * place), layout="constrained")
    height = 0.8 / max(len(threads), 1)
    for k, thread in enumerate(threads):
        _bars(axes, data["results"][thread], places, (k - (len(threads) - 1) / 2) * height, height, thread)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×" if value >= 1 else f"1/{1 / value:g}×")
    axes.set_yticks(list(places.values()), ticks, fontsize=8)
    axes.set_ylim(place - 0.6 + 0.1, -0.6)
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.6, high * 1.6)  # room for the names
    axes.set_axisbelow(True)
    axes.grid(axis="x", alpha=0.3)
    figure.suptitle("Kiln's speed over that of the fastest peer, which is named", fontsize=11)
    figure.legend(loc="outside lower center", ncols=len(threads), fontsize=8)
    figure.savefig(path, dpi=110)


def _bars(axes, results, places, shift, height, threads):
    values = {name: ratio(results.get(name, {})) for name in places}
    values = {name: value for name, value in values.items() if value}
    rows = [places[name] + shift for name in values]
    label = f"{threads} thread{'s' if threads != '1' else ''}"
    axes.barh(rows, [value - 1 for value in values.values()], height, left=1, label=label)
    for row, (name, value) in zip(rows, values.items()):
        faster = value >= 1
        axes.annotate(
            f"{value:.2f} {best_other(results[name])}", (value, row), (3 if faster else -3, 0),
            textcoords="offset points", ha="left" if faster else "right", va="center", fontsize=6,
        )  # fmt: skip

"""A plan as a picture: kernels from left to right, bytes of the arena from bottom to top, a box for each value that lies
there, as long as it is needed."""

import math
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _LABELS = 960, 360, 20, 30, 170
_COLOURS = ("#8fb8de", "#f2c078", "#a8d5a2", "#e59fa0", "#c3b1e1", "#d9c7a0")


def picture(plan):
    """The plan as SVG."""
    kernels = max(len(plan.kernels), 1)
    column, scale = (_WIDTH - 2 * _LEFT) / kernels, _HEIGHT / max(plan.arena, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_TOP + _HEIGHT + _LABELS}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="{_LEFT}" y="18" font-size="13">{escape(_title(plan))}</text>',
    ]
    boxes = [value for value in plan.values if value["offset"] is not None]
    for number, value in enumerate(boxes):
        first, last = value["kernels"]
        size = math.prod(value["shape"]) * value["itemsize"]
        x, y = _LEFT + first * column, _TOP + _HEIGHT - (value["offset"] + size) * scale
        what = f"{value['name']}: {value['dtype']}{list(value['shape'])}"
        if value["becomes"]:
            what += f", becomes {value['becomes']}"
        if value["reuses"]:
            what += f", where {value['reuses']} was"
        parts.append(
            f'<g><title>{escape(what)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{(last - first + 1) * column:.1f}" '
            f'height="{max(size * scale, 1):.1f}" fill="{_COLOURS[number % len(_COLOURS)]}" stroke="white"/>'
        )
        if size * scale > 12:
            parts.append(f'<text x="{x + 4:.1f}" y="{y + 11:.1f}">{escape(value["name"])}</text>')
        parts.append("</g>")
    for number, kernel in enumerate(plan.kernels):
        x, y = _LEFT + (number + 0.5) * column, _TOP + _HEIGHT + 10
        parts.append(f'<text transform="translate({x:.1f},{y}) rotate(60)">{escape(kernel["name"])}: {kernel["reads"] + kernel["writes"]:,} bytes</text>')
    return "\n".join([*parts, "</svg>\n"])


def _title(plan):
    return (
        f"{plan.program}: {len(plan.kernels)} kernels, {plan.moved:,} bytes moved, arena of {plan.arena:,} bytes "
        f"({plan.separate:,} without reuse)"
    )

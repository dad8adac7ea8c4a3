"""Where the time of a function's calls goes: `print(f.profile(a, b, c))` is a table.

One call tells its phases, as `f.timings` has them; the kernel alone is then measured on the daemon for about a tenth of a
second, five times.
"""

import html
import time

PHASES = ("queue", "compile", "upload", "kernel", "download")
_MEASUREMENTS = 5
_SECONDS = 0.1  # of each
_MOST_RUNS = 10_000


class Profile:
    """What `f.profile(...)` gives: `seconds` by phase of one call, `wall` of it as the caller saw it, `kernel` (a
    ProfileResult of the kernel alone), `bytes` of its arguments and results, and `launches` of its kernels on a GPU."""

    def __init__(self, title, seconds, wall, kernel, size, launches):
        self.title = title
        self.seconds = seconds
        self.wall = wall
        self.kernel = kernel
        self.bytes = size
        self.launches = launches

    @property
    def bandwidth(self):
        """Bytes of arguments and results a second of the kernel: what a kernel that moves data alone has to do with."""
        return self.bytes / self.kernel.min

    def rows(self):
        """(phase, seconds, share of the call), the last with what no phase has: the way there and back."""
        rest = max(self.wall - sum(self.seconds.values()), 0.0)
        whole = max(self.wall, sum(self.seconds.values()))
        return [(phase, value, value / whole) for phase, value in (*self.seconds.items(), ("way", rest))]

    def __str__(self):
        lines = [self.title, f"{'phase':10} {'seconds':>10}  share"]
        lines += [f"{phase:10} {value:10.3g}  {share:5.1%}" for phase, value, share in self.rows()]
        kernel = self.kernel
        lines.append(f"kernel alone: {kernel.min:.3g} s at best, {kernel.median:.3g} s in the middle")
        lines.append(f"arguments and results: {self.bytes} bytes, {self.bandwidth / 1e9:.3g} GB/s at best")
        if self.launches:
            lines.append(f"launches: {self.launches}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        cells = "".join(f"<tr><td>{phase}</td><td>{value:.3g}</td><td>{share:.1%}</td></tr>" for phase, value, share in self.rows())
        head, *tail = str(self).splitlines()
        tail = "<br>".join(html.escape(line) for line in tail[len(self.rows()) + 1 :])
        return f"<table><caption>{html.escape(head)}</caption><tr><th>phase</th><th>seconds</th><th>share</th></tr>{cells}</table>{tail}"


def profiled(function, args, sizes):
    """The Profile of a function's calls with these arguments."""
    function(*args, **sizes)  # the first may compile, and touches what was never touched
    begin = time.perf_counter()
    made = function(*args, **sizes)
    wall = time.perf_counter() - begin
    timings = function.timings
    seconds = {phase: timings[phase] for phase in PHASES}
    number = min(max(int(_SECONDS / max(seconds["kernel"], 1e-7)), 1), _MOST_RUNS)
    kernel = function.time_evaluator(number=number, repeat=_MEASUREMENTS)(*args, **sizes)
    results = made if isinstance(made, tuple) else (made,)
    size = sum(getattr(value, "nbytes", 0) for value in (*args, *sizes.values(), *results))
    report = function.report()
    return Profile(repr(function), seconds, wall, kernel, size, report.get("launches", 0) if report.get("kernels") else 0)

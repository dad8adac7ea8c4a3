"""Predictions: what the automatic schedules of a kernel take, without a run."""

from .._base.error import public
from ..v1 import predict_pb2 as wire
from ..v1 import service_pb2 as service
from .build import compile_parts
from .connection import connection_or_default
from .sizes import sizes_by_name
from .times import time_text


class PredictedSchedule:
    """A schedule that a kernel may have: its `name`, its `steps` as a kernel file has them, the `seconds` a run is
    predicted to take, and `terms`, what each bottleneck alone would take, in seconds by its name."""

    def __init__(self, schedule):
        self.name = schedule.name
        self.steps = list(schedule.steps)
        self.seconds = schedule.seconds
        self.terms = {term.name: term.seconds for term in schedule.terms}
        self._on_top = {term.name for term in schedule.terms if term.on_top}

    @property
    def bound(self):
        """The name of the largest term, of those that are not added on top."""
        return max((name for name in self.terms if name not in self._on_top), key=self.terms.get, default="")

    def __repr__(self):
        return f"PredictedSchedule({self.name}: {time_text(self.seconds)}, bound by {self.bound})"


class Predictions:
    """What predict found: `machine`, which the schedules are chosen for, and `surroundings`, its clock, caches, memory
    and threads, both in words; `schedules`, the one that is taken first, then the others, the quickest first."""

    def __init__(self, response):
        self.machine = response.machine
        self.surroundings = response.surroundings
        self.schedules = [PredictedSchedule(schedule) for schedule in response.schedules]

    def __repr__(self):
        return "\n".join([self.machine, self.surroundings, *map(repr, self.schedules)])


@public
def predict(
    inputs, args=None, target=None, name="main", *,
    sizes=None, threads=0, strict=False, fast=False, reproducible=True, connection=None,
):  # fmt: skip
    """What the automatic schedules of a kernel are predicted to take, and why. Runs nothing. Returns
    Predictions.

    `inputs` and `args` are those of build, and so is `target`, which may name a CPU or GPU that is not here
    ("llvm -mcpu=znver5", "cuda -arch=sm_90"). `sizes` says what each size is, by name; `threads` how many cores of a CPU the kernel is to have (0: as many
    as the daemon's host has).
    """
    connection = connection_or_default(connection)
    options = {"strict": strict, "fast": fast, "reproducible": reproducible}
    _, parts = compile_parts(inputs, args, name, target, None, options)
    request = wire.PredictRequest(
        kernel=service.CompileRequest(**parts), sizes=sizes_by_name(sizes, "predict"), threads=threads
    )
    return Predictions(connection.call("PredictionService/Predict", request, wire.PredictResponse))

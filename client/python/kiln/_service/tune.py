"""Tuning: schedules measured on the daemon's device, the fastest kept there."""

import sys

from .._base.error import invalid, public
from ..v1 import service_pb2 as wire
from . import tune_plot
from .build import compile_parts
from .call import Call
from .connection import connection_or_default
from .function import Function
from .grpc_setup import grpc
from .rpc import failure_of
from .sizes import sizes_by_name
from .times import time_text


class TuneResult:
    """What a search found.

    `seconds` of a run under the fastest schedule, `default_seconds` under the one that Kiln chooses
    unmeasured, and `speedup` between them; `schedule`, the steps as a kernel file has them; `record`, by
    which reports call it ("" when none was faster); `end`, what there was no more of ("trials",
    "seconds" or "candidates"), or "stopped"; `problem`, why the record will not outlive the daemon;
    `read_for`, the arch whose code was read where nothing ran ("" when it was measured); and `trials`,
    each a dict of number, candidate, seconds, failure, recorded, elapsed and best.
    """

    def __init__(self, name):
        self.name = name
        self.trials = []
        self.seconds = self.default_seconds = 0.0
        self.candidate = self.record = self.problem = self.read_for = ""
        self.schedule = []
        self.end = "stopped"

    @property
    def speedup(self):
        return self.default_seconds / self.seconds if self.seconds else 1.0

    def plot(self, path=None):
        """A matplotlib figure of the search: each candidate and the fastest so far. Saved when there is
        a path."""
        return tune_plot.plot(self, path)

    def __repr__(self):
        failed = sum(bool(trial["failure"]) for trial in self.trials)
        return (
            f"TuneResult({self.name}: {time_text(self.seconds)} a run instead of {time_text(self.default_seconds)}, "
            f"{self.speedup:.2f} times as fast; {len(self.trials)} candidates, {failed} failed)"
        )

    def _note_trial(self, trial):
        fields = ("number", "candidate", "seconds", "failure", "recorded", "elapsed", "best")
        self.trials.append({field: getattr(trial, field) for field in fields})
        if trial.number == 0:
            self.default_seconds = trial.best
        elif trial.best < self.seconds:
            self.candidate = trial.candidate
        self.seconds = trial.best

    def _note_end(self, result):
        self.seconds, self.default_seconds = result.best_seconds, result.default_seconds
        self.candidate, self.record, self.end = result.candidate, result.record, result.end
        self.schedule, self.problem, self.read_for = list(result.schedule), result.problem, result.read_for


class _Bar:
    """A bar of tqdm, where it is installed; else a line for each schedule that is faster."""

    def __init__(self, name, wanted):
        self._name, self._wanted, self._best, self._bar = name, wanted, 0.0, None

    def begin(self, start):
        if not self._wanted:
            return
        if start.waiting:
            print(f"{self._name}: waiting for {start.waiting} other searches", file=sys.stderr)
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            print(
                f"{self._name}: {start.candidates:.15g} candidates; at most {start.trials} trials and "
                f"{start.seconds:g} s (pip install tqdm for a bar)",
                file=sys.stderr,
            )
            return
        total = int(min(start.trials, start.candidates))
        self._bar = tqdm(total=total, desc=f"tune {self._name}", unit="trial")

    def show(self, trial, result):
        if self._bar is not None:
            self._bar.update(0 if trial.recorded else 1)
            self._bar.set_postfix_str(f"{time_text(trial.best)} a run, {result.speedup:.2f} times as fast")
        elif self._wanted and trial.best != self._best:
            print(
                f"{self._name}: trial {trial.number} after {trial.elapsed:.1f} s: {time_text(trial.best)} a run, "
                f"{result.speedup:.2f} times as fast",
                file=sys.stderr,
            )
        self._best = trial.best

    def close(self):
        if self._bar is not None:
            self._bar.close()


def _inputs(connection, request, definition, inputs):
    """Arguments on the wire, and what must live as long as the call."""
    function = Function(connection, definition)  # for the parameters
    call = Call(function, inputs, {})
    call.marshal()
    request.MergeFromString(_as_tune_request(call.encoded))
    return call


def _as_tune_request(encoded):
    run = wire.RunRequest.FromString(encoded)
    return wire.TuneRequest(arguments=run.arguments).SerializeToString()


@public
def tune(
    inputs, args=None, target=None, name="main", *,
    arch=None, sizes=None, data=None, trials=0, seconds=0.0, progress=True, plot=None,
    strict=False, fast=False, reproducible=True, connection=None,
):  # fmt: skip
    """Measures automatic schedules on the daemon's device, and keeps the fastest there for every later build
    of the same definition, whoever asks. Stages with steps stay as they are. Returns a TuneResult.

    `inputs` and `args` are those of build. `sizes` says what each size is, by name, unless `data`, the
    input arrays, shows it; without `data` the daemon makes inputs up. A search ends after so many
    `trials` or `seconds` (0: as the daemon allows), and another call goes on where it ended. Ctrl-C ends
    it too; what it found stays. `plot` is a file for a plot of the search.

    No candidate changes a result: each is compared with the schedule without tuning, bit by bit.

    Where the daemon has no GPU of `arch` ("sm_90"), nothing runs and nothing is compared: each candidate is compiled,
    and its machine code read for what a call takes. What is measured once there is such a GPU counts more.
    """
    connection = connection_or_default(connection)
    options = {"strict": strict, "fast": fast, "reproducible": reproducible}
    _, parts = compile_parts(inputs, args, name, target, arch, options)
    if trials < 0 or seconds < 0:
        raise invalid("TUNE_BUDGET", "tune: trials and seconds must be at least 0")
    definition = wire.CompileRequest(**parts)
    request = wire.TuneRequest(
        kernel=definition, sizes=sizes_by_name(sizes, "tune"), trials=trials, seconds=seconds,
        session=connection.session,
    )  # fmt: skip
    kept = _inputs(connection, request, definition, data) if data is not None else None
    result = TuneResult(definition.source_map.kernel)
    _follow(connection, request, result, progress)
    del kept
    if plot is not None:
        result.plot(plot)
    return result


def _follow(connection, request, result, progress):
    bar = _Bar(result.name, progress)
    stream = connection.stream("KernelService/Tune", request, wire.TuneEvent)
    try:
        for event in stream:
            if event.HasField("start"):
                bar.begin(event.start)
            elif event.HasField("trial"):
                result._note_trial(event.trial)
                bar.show(event.trial, result)
            else:
                result._note_end(event.result)
    except KeyboardInterrupt:
        stream.cancel()
    except grpc.RpcError as error:
        failure = failure_of(error, connection.address).error
        raise failure from None
    finally:
        bar.close()

"""Jobs: calls that go on while no client waits, and outlive the daemon."""

import time
import typing
import uuid

import numpy as np

from .._base import dtypes
from .._base.error import DeadlineExceeded, InvalidArgument, NotFound, public
from ..v1 import service_pb2 as wire
from .connection import connection_or_default
from .grpc_setup import grpc
from .rpc import failure_of

_PHASES = {1: "queued", 2: "compiling", 3: "running", 4: "done", 5: "failed", 6: "cancelled"}
_ENDED = ("done", "failed", "cancelled")
_RECONNECT_PAUSE = 0.2


class JobState(typing.NamedTuple):
    """What is known of a job."""

    id: str
    kernel: str
    phase: str  # queued, compiling, running, done, failed or cancelled
    seconds: float  # since it was submitted, until its end
    attempts: int  # how often it was begun
    message: str  # of a failed job


def _state(reply):
    return JobState(reply.job, reply.kernel, _PHASES[reply.phase], reply.seconds, reply.attempts, reply.message)


class Job:
    """A call that the daemon has accepted; it ends whether anybody waits or not. kiln.job(id) finds it again,
    from any process."""

    def __init__(self, connection, job_id):
        self._connection = connection
        self.id = job_id

    @public
    def watch(self, timeout=None):
        """Yields the state now, then each change until the end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for state in self._states(deadline):
                yield state
                if state.phase in _ENDED:
                    return

    def _states(self, deadline):
        """The states that one stream tells; it breaks off when the daemon goes."""
        connection = self._connection
        left = None if deadline is None else max(deadline - time.monotonic(), 1e-3)
        stream = connection.stream("JobService/Watch", wire.WatchRequest(job=self.id), wire.JobState, timeout=left)
        try:
            yield from map(_state, stream)
        except grpc.RpcError as error:
            failure = failure_of(error, connection.address)
            if isinstance(failure.error, DeadlineExceeded):
                raise self._too_late() from None
            if not failure.transport and failure.pause is None:
                raise failure.error from None
            # The job is kept: the next daemon goes on with it.
            time.sleep(_RECONNECT_PAUSE)
            connection.describe()
        finally:
            stream.cancel()  # of who looks no further

    @public
    def state(self):
        """The JobState now."""
        for state in self.watch():
            return state

    @public
    def done(self):
        """Whether it has ended, however."""
        return self.state().phase in _ENDED

    @public
    def wait(self, timeout=None):
        """Waits for the end, at most `timeout` seconds, and returns the last state."""
        for state in self.watch(timeout):
            last = state
        return last

    @public
    def result(self, timeout=None):
        """Waits for the end and returns the output as a numpy array, or a tuple of them in argument order. Raises
        what a failed job failed with."""
        self.wait(timeout)
        connection = self._connection
        request = wire.ResultRequest(job=self.id, session=connection.session)
        reply = connection.call("JobService/Result", request, wire.RunResponse)
        outputs = tuple(map(self._output, reply.results))
        return outputs[0] if len(outputs) == 1 else outputs

    def _output(self, result):
        if not result.tensor:
            dtype = dtypes.NUMPY[dtypes.NAME[result.type]]
            return np.frombuffer(result.data, dtype).reshape(result.shape).copy()
        try:
            return self._connection.download(result.tensor)
        finally:
            self._connection.forget(result.tensor, 0)

    @public
    def cancel(self):
        """Ends the job unless it has ended, and returns its state: one that runs ends soon after."""
        request = wire.CancelRequest(job=self.id)
        return _state(self._connection.call("JobService/Cancel", request, wire.CancelResponse).state)

    def __repr__(self):
        return f"Job({self.id!r})"

    def _too_late(self):
        return DeadlineExceeded(f"job {self.id} did not end in time", "DEADLINE")


def submit(connection, kernel, encoded, timeout=None):
    """The job of a call whose arguments are encoded; asked for again it is the same one."""
    request = wire.SubmitRequest(kernel=kernel, request_id=uuid.uuid4().hex)
    request.run.MergeFromString(encoded)
    request.run.session = connection.session
    for argument in request.run.arguments:
        if argument.HasField("output"):
            argument.output.keep = False  # a job keeps its outputs itself
    return Job(connection, connection.call("JobService/Submit", request, wire.SubmitResponse, timeout=timeout).job)


@public
def jobs(connection=None):
    """The JobState of each of your jobs that the daemon knows, in the order of submission."""
    reply = connection_or_default(connection).call("JobService/List", wire.ListRequest(), wire.ListResponse)
    return [_state(state) for state in reply.jobs]


@public
def job(job_id, connection=None):
    """The Job with this id, or the one whose id begins so."""
    connection = connection_or_default(connection)
    if not isinstance(job_id, str):
        raise InvalidArgument(f"the id of a job is a string, but got {type(job_id).__name__}", "JOB")
    ids = [state.id for state in jobs(connection)]
    # "job-1" is the first job rather than one of job-10 to job-19.
    found = [i for i in ids if i == job_id or i.startswith(f"{job_id}-")] or [i for i in ids if i.startswith(job_id)]
    if not job_id or not found:
        raise NotFound(f"there is no job {job_id}; kiln.jobs() lists those there are", "JOB")
    if len(found) > 1:
        raise InvalidArgument(f"several jobs begin with {job_id}: {', '.join(found[:5])}", "JOB")
    return Job(connection, found[0])

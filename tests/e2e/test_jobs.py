"""Jobs from Python, on a real daemon: they outlive the process that submitted them, and the daemon."""

import signal

import numpy as np
import pytest

import kernels
import kiln


def random(*shape):
    return np.random.default_rng(7).uniform(-1, 1, size=shape).astype("float32")


def test_a_job_is_found_by_its_id_and_by_the_beginning_of_it(daemon):
    connection = daemon.connection
    f = connection.build(kernels.add_one(8))
    x = random(8)
    job = f.submit_job(x)
    assert job.result().tobytes() == (x + 1).tobytes()
    assert connection.job(job.id).result().tobytes() == (x + 1).tobytes()
    number = job.id.rsplit("-", 1)[0]
    assert connection.job(number).id == job.id
    state = job.state()
    assert (state.phase, state.attempts, state.id) == ("done", 1, job.id)
    assert [each.id for each in connection.jobs()] == [job.id]
    assert [each.phase for each in job.watch()] == ["done"]
    assert job.cancel().phase == "done"


def test_what_is_no_job_is_refused(daemon):
    connection = daemon.connection
    f = connection.build(kernels.add_one(4))
    ids = [f.submit_job(random(4)).id for _ in range(2)]
    with pytest.raises(kiln.NotFound) as unknown:
        connection.job("job-77")
    assert unknown.value.message == "there is no job job-77; kiln.jobs() lists those there are"
    with pytest.raises(kiln.InvalidArgument) as several:
        connection.job("job")
    assert several.value.message == f"several jobs begin with job: {ids[0]}, {ids[1]}"
    with pytest.raises(kiln.InvalidArgument) as number:
        connection.job(7)
    assert number.value.message == "the id of a job is a string, but got int"


def test_a_job_that_takes_long_is_waited_for_as_long_as_one_likes_and_cancelled(daemon):
    f = daemon.connection.build(kernels.matmul(400, 400, 400), target="interpreter")
    job = f.submit_job(random(400, 400), random(400, 400))
    with pytest.raises(kiln.DeadlineExceeded) as late:
        job.result(timeout=0.3)
    assert late.value.message == f"job {job.id} did not end in time"
    assert not job.done()
    job.cancel()
    assert job.wait(timeout=60).phase == "cancelled"
    with pytest.raises(kiln.Cancelled):
        job.result()


def test_inputs_are_as_they_were_and_large_outputs_come_back(daemon):
    connection = daemon.connection
    f = connection.build(kernels.add_one(2 << 20))
    x = random(2 << 20)
    array = connection.array(x)
    job = f.submit_job(array)
    array[...] = 0
    assert job.result().tobytes() == (x + 1).tobytes()
    del array
    connection.free()
    assert job.result().tobytes() == (x + 1).tobytes()
    connection.free()
    assert connection.describe()["tensors"] == 0


def test_jobs_outlive_the_daemon_that_is_killed(start, folder):
    first = start()
    f = first.connection.build(kernels.add_one(16))
    x = random(16)
    jobs = [f.submit_job(x + i) for i in range(20)]
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = start()
    for i, job in enumerate(jobs):
        found = second.connection.job(job.id)
        assert found.wait(timeout=60).phase == "done"
        assert found.result().tobytes() == (x + i + 1).tobytes()
    assert len(second.connection.jobs()) == 20

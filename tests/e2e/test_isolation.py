"""The service in one process (--isolation=none) does what it does in several, but for what ends or kills workers."""

import os
import shutil
import subprocess

import pytest
from test_calls import (  # noqa: F401
    test_a_call_is_part_of_the_trace_of_its_process,
    test_a_cancelled_call_ends_on_the_daemon,
    test_another_client_does_not_wait_behind_a_long_call,
    test_calls_of_a_client_run_in_their_order,
    test_each_fails_for_itself,
    test_many_calls_go_over_one_stream,
)
from test_jobs import (  # noqa: F401
    test_a_job_is_found_by_its_id_and_by_the_beginning_of_it,
    test_a_job_that_takes_long_is_waited_for_as_long_as_one_likes_and_cancelled,
    test_inputs_are_as_they_were_and_large_outputs_come_back,
    test_what_is_no_job_is_refused,
)
from test_service import (  # noqa: F401
    test_a_damaged_cache_entry_is_compiled_again_with_a_warning,
    test_a_kernel_without_end_ends_at_the_callers_timeout,
    test_any_number_of_threads_gives_the_same_bits,
    test_bad_requests_lose_nothing,
    test_cuda_without_a_gpu_is_one_sentence_and_the_daemon_lives,
    test_no_time_steps_at_all_are_refused_at_the_call,
    test_one_compile_serves_all_sizes_bit_for_bit,
    test_sigterm_drains_and_exits_with_zero,
    test_the_second_compile_comes_from_memory_and_after_a_restart_from_disk,
)


@pytest.fixture
def start(start):
    return lambda **options: start(flags=["--isolation", "none"], **options)


def test_there_are_no_workers(daemon):
    assert daemon.children("kiln-worker") == daemon.children("kiln-compiler") == []
    parts = {part["name"]: part["message"] for part in daemon.connection.describe()["components"]}
    assert parts["sandbox of cpu:0"] == "none: with --isolation=none kernels run in the daemon's own process"


def test_a_daemon_that_was_copied_alone_says_so_at_once(tmp_path):
    """Without its worker it would try to start one again and again."""
    program = shutil.copy(os.environ.get("KILN_DAEMON") or shutil.which("kilnd"), tmp_path / "kilnd")
    for flags in ([], ["--isolation", "none"]):
        ended = subprocess.run([program, "--listen", f"unix:{tmp_path}/s", *flags], capture_output=True, text=True, timeout=10)
        assert ended.returncode == 1
        assert ended.stderr == (f"kilnd: cannot run its worker {tmp_path.parent}/libexec/kiln-worker: "
                                "No such file or directory; install kilnd with what belongs beside it\n")

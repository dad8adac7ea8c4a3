"""What is known of a GPU that is not here: the machine code for it is read, and its time predicted."""

import kiln
import pytest
from kiln import te

from test_tune import KERNEL, matmul, notes_of, run_kiln

BILLION = 1e9


def product(n, dtype="float32"):
    A, B = (te.placeholder((n, n), dtype, name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    return [A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k), name="C")]


def compiled(tensors, arch, **options):
    try:
        return kiln.compile(tensors, target="cuda", arch=arch, **options)
    except kiln.Unavailable as error:
        pytest.skip(f"no NVRTC here: {error.message}")


def prediction(tensors, arch, sizes=None):
    return compiled(tensors, arch).report(sizes)["predicted"]


@pytest.mark.parametrize(("arch", "gpu", "peak"), [
    # Multiply-adds a second of float32: multiprocessors, lanes, gigahertz.
    ("sm_80", "A100 SXM 40 GB", 108 * 64 * 1.41 * BILLION),
    ("sm_89", "L4", 58 * 128 * 2.04 * BILLION),
    ("sm_90", "H100 SXM", 132 * 128 * 1.83 * BILLION),
    ("sm_100", "B200", 148 * 128 * 1.85 * BILLION),
])  # fmt: skip
def test_a_report_predicts_what_a_call_takes(service, arch, gpu, peak):
    told = prediction(product(4096), arch)
    least = 4096**3 / peak
    assert (told["gpu"], told["measured"]) == (gpu, False)
    # No less than the multiply-adds alone, and not much more: two of three instructions of the main loop are such.
    assert least < told["seconds"] < 2 * least
    assert told["largest"] in told["terms"]
    assert told["terms"]["multiply-adds"] == pytest.approx(least, rel=0.05)


def test_tensor_cores_take_less(service):
    lanes, cores = (prediction(product(2048, dtype), "sm_80") for dtype in ("float32", "float16"))
    assert "tensor cores" not in lanes["terms"]
    assert cores["terms"]["tensor cores"] >= 2048**3 / (108 * 1024 * 1.41 * BILLION)
    assert cores["seconds"] < lanes["seconds"] / 3


# Copies of both factors, and the product: the largest term is one of those that are told.
def test_of_several_launches_the_largest_term_is_named(service):
    A, B = te.placeholder((4095, 4091), "bfloat16", "A"), te.placeholder((4091, 4093), "bfloat16", "B")
    k = te.reduce_axis((0, 4091), name="k")
    sums = te.compute((4095, 4093), lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k), "C")
    report = compiled([A, B, sums], "sm_80").report()
    assert report["launches"] == 3
    told = report["predicted"]
    assert told["largest"] == "tensor cores" and told["terms"]["tensor cores"] == max(told["terms"].values())
    # The rest of the sum is no tensor core's: 11 of 4091 steps, and a cast of each element that is read for it.
    assert 0.01 < told["terms"]["multiply-adds"] / told["seconds"] < 0.2


# The same code is read for all of them: which generator and why, who multiplies how much of the main loop, and how wide memory is
# accessed, without a GPU.
@pytest.mark.parametrize(("arch", "gpu", "generator", "kind"), [
    ("sm_80", "A100 SXM 40 GB", "CUDA C", "HMMA"), ("sm_89", "L4", "CUDA C", "HMMA"),
    ("sm_90", "H100 SXM", "Tile IR", "HGMMA"), ("sm_100", "B200", "Tile IR", "UTCMMA"),
    ("sm_90+h200", "sm_90+h200", "Tile IR", "HGMMA")])  # fmt: skip
def test_a_report_says_what_a_kernel_is_made_of(service, arch, gpu, generator, kind):
    report = compiled(product(4096, "bfloat16"), arch).report()
    if "pip install nvidia-cuda-tileiras" in report["generator"]["why"]:
        pytest.skip(f"no tileiras here: {report['generator']['why']}")
    assert report["generator"]["name"] == generator and report["generator"]["why"]
    row = report["kernels"][-1]
    assert row["main_loop"]["kind"] == kind and 0 < row["main_loop"]["share"] < 1
    assert row["registers"] > 0 and row["spill_bytes"] == 0
    cuda = report["kernels"][0]
    assert cuda["main_loop"]["kind"] == "HMMA" and set(cuda["main_loop"]["accesses"]) >= {"LDSM"}
    assert any("split(C.i, factor=" in step for step in report["schedule"])
    told = report["predicted"]
    assert told["gpu"] == gpu and told["largest"] in told["terms"] and told["seconds"] > 0


def test_sizes_of_a_call_are_given_by_name(service):
    n, m, k = (te.var(name) for name in ("n", "m", "k"))
    built = compiled(matmul(n, k, m), "sm_90", name="matmul")
    assert "predicted" not in built.report()
    small, large = (built.report({"n": size, "m": size, "k": size})["predicted"] for size in (512, 4096))
    assert large["seconds"] > 50 * small["seconds"]
    with pytest.raises(kiln.InvalidArgument) as caught:
        built.report({"n": 5})
    assert str(caught.value) == "a report predicts matmul for certain sizes, but k is not given; give each size"
    with pytest.raises(kiln.InvalidArgument) as caught:
        built.report({"n": -5, "m": 1, "k": 1})
    assert str(caught.value) == "the size n of matmul is -5; it must be 0 or more"


def test_schedules_are_tuned_by_their_code(daemon):
    tensors = product(96)
    result = daemon.connection.tune(tensors, target="cuda", arch="sm_90", trials=6, progress=False)
    assert result.read_for == "sm_90"
    tried = [trial for trial in result.trials if not trial["failure"]]
    assert len(tried) >= 2
    assert all(trial["seconds"] > 0 for trial in tried)
    assert result.seconds == pytest.approx(min(trial["seconds"] for trial in tried), rel=0.03)
    assert result.seconds <= result.default_seconds
    # The first is the schedule without tuning; the same code is predicted to take the same.
    assert tried[0]["seconds"] == result.default_seconds


def test_a_record_of_code_is_used_where_it_was_read_for(daemon):
    """Without tuning a product of unknown sizes has the tiles that suit small ones."""
    n, m, k = (te.var(name) for name in ("n", "m", "k"))
    tensors, sizes = matmul(n, k, m), {"n": 4096, "m": 4096, "k": 4096}
    result = daemon.connection.tune(tensors, target="cuda", arch="sm_90", sizes=sizes, progress=False)
    assert result.seconds < 0.95 * result.default_seconds
    assert result.end == "candidates"
    after = compiled(tensors, "sm_90", connection=daemon.connection)
    faster = f"{result.default_seconds / result.seconds:.2f}"
    assert notes_of(after) == [
        f"schedule from tuning record {result.record}: {faster} times as fast as without by the code for sm_90, which never ran"
    ]
    assert notes_of(compiled(tensors, "sm_80", connection=daemon.connection)) == []
    assert after.report(sizes)["predicted"]["seconds"] == pytest.approx(result.seconds, rel=1e-6)


def _tiled(tensors, arch, **options):
    kernel = compiled(tensors, arch, **options)
    why = kernel.report()["generator"]["why"]
    if "pip install nvidia-cuda-tileiras" in why:
        pytest.skip(f"no tileiras here: {why}")
    return kernel


# Both generators are candidates, and blocks of tiles among themselves: each is read for what its code takes.
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_blocks_of_tiles_are_tuned_by_their_code(daemon, arch):
    tensors = product(2048, "bfloat16")
    before = _tiled(tensors, arch, connection=daemon.connection).report()
    assert before["generator"]["name"] == "Tile IR"
    result = daemon.connection.tune(tensors, target="cuda", arch=arch, trials=20, progress=False)
    tiled = [trial for trial in result.trials if "C: tiles of " in trial["candidate"]]
    tried = {trial["candidate"]: trial["seconds"] for trial in tiled if not trial["failure"]}
    assert len(tried) >= 4 and len(set(tried.values())) >= 2, tiled
    # What is too large for its registers is no candidate.
    failures = {trial["failure"] for trial in tiled} - {""}
    spills = "it is not made of tiles: the code made of tiles spills "
    assert all(failure.startswith(spills) for failure in failures), failures
    others = [trial["seconds"] for trial in result.trials if "C: tiles of " not in trial["candidate"] and not trial["failure"]]
    assert others and min(tried.values()) < min(others)
    assert result.seconds <= result.default_seconds
    assert result.default_seconds in tried.values()


# 4096 is what blocks of open sizes are chosen for; a small product wants smaller ones.
def test_a_record_keeps_the_block_of_tiles(daemon):
    n, m, k = (te.var(name) for name in ("n", "m", "k"))
    A, B = te.placeholder((n, k), "float16", "A"), te.placeholder((k, m), "float16", "B")
    axis = te.reduce_axis((0, k), name="k")
    wide = lambda x: x.astype("float32")
    tensors = [A, B, te.compute((n, m), lambda i, j: te.sum(wide(A[i, axis]) * wide(B[axis, j]), axis=axis), name="C")]
    _tiled(tensors, "sm_90", connection=daemon.connection)
    sizes = {"n": 1024, "m": 1024, "k": 1024}
    result = daemon.connection.tune(tensors, target="cuda", arch="sm_90", sizes=sizes, trials=24, progress=False)
    assert result.seconds < 0.95 * result.default_seconds and "tiles of " in result.candidate
    steps = [step for step in result.schedule if step.startswith("pragma(") and "tile_" in step]
    assert [step.rstrip(")").split(", ")[1] for step in steps] == ["tile_rows", "tile_columns", "tile_steps", "tile_warps"]
    after = _tiled(tensors, "sm_90", connection=daemon.connection)
    generator = after.report()["generator"]
    assert generator["name"] == "Tile IR" and generator["why"].startswith("the schedule asks for a product"), generator
    assert [step for step in after.report()["schedule"] if "tile_" in step] == steps
    assert after.report(sizes)["predicted"]["seconds"] == pytest.approx(result.seconds, rel=1e-6)


def test_what_is_read_takes_sizes_and_no_inputs(service):
    n, m, k = (te.var(name) for name in ("n", "m", "k"))
    tensors = matmul(n, k, m)
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.tune(tensors, target="cuda", arch="sm_90", name="matmul", sizes={"n": 4}, progress=False)
    assert str(caught.value) == "matmul is tuned for certain sizes, but k is not given; give each size"
    a = kiln.nd.empty((1, 1))
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.tune(tensors, target="cuda", arch="sm_90", name="matmul", data=[a, a], progress=False)
    assert str(caught.value) == (
        "there is no sm_90 here to run matmul on, so that its schedules are judged by their code; give its sizes instead "
        "of inputs"
    )


def test_the_command_line_reads_code(daemon, tmp_path):
    (tmp_path / "matmul.kiln").write_text(KERNEL)
    options = ["--target", "cuda", "--arch", "sm_90", *(part for name in "nml" for part in ("--size", f"{name}=256"))]
    report = run_kiln(daemon, "compile", "matmul.kiln", "--report", *options, cwd=tmp_path)
    assert "\n  gpu: H100 SXM\n" in report.stdout and "\n  largest: " in report.stdout, report.stderr
    told = run_kiln(daemon, "tune", "matmul.kiln", "--trials", "3", *options, cwd=tmp_path)
    assert told.stdout.startswith("matmul: 3 candidates read, "), told.stderr
    assert "no sm_90 is here: times are predicted by the code for it, and nothing ran\n" in told.stdout

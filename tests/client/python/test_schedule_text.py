"""Schedules saved, loaded and replayed."""

import pytest
from expect import expect

import kiln
from kiln import te
from kiln._encoding.encode import encode
from kiln._tables import STEPS


def matmul():
    n = te.var("n")
    a, b = te.placeholder((n, 32), name="A"), te.placeholder((32, 48), name="B")
    k = te.reduce_axis((0, 32), name="k")
    return a, b, te.compute((n, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def scheduled(c):
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    io, jo, ii, ji = s[c].tile(i, j, 8, 16)
    ko, ki = s[c].split(c.op.reduce_axis[0], nparts=4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    fused = s[c].fuse(io, jo)
    s[c].parallel(fused)
    s[c].vectorize(ji)
    return s


TEXT = """\
schedule cpu {
  tile(C.i, C.j, 8, 16)
  split(C.k, parts=4)
  reorder(C.i.outer, C.j.outer, C.k.outer, C.i.inner, C.k.inner, C.j.inner)
  fuse(C.i.outer, C.j.outer)
  parallel(C.i.outer.j.outer.fused)
  vectorize(C.j.inner)
}
"""


def wire(schedule, arguments):
    message = encode(schedule, list(arguments), "f").schedule
    for step in message.steps:
        step.ClearField("line")
    return message


def test_a_schedule_is_text():
    _, _, c = matmul()
    assert scheduled(c).text() == TEXT
    assert te.create_schedule(c.op).text("cuda") == "schedule cuda {\n}\n"


def test_what_is_saved_is_loaded_on_the_same_definition(tmp_path):
    a, b, c = matmul()
    path = tmp_path / "matmul.sched"
    scheduled(c).save(path)
    again = kiln.load_schedule(path, [a, b, c])
    assert again.text() == TEXT
    assert wire(again, (a, b, c)) == wire(scheduled(c), (a, b, c))
    assert [axis.name for axis in again[c].leaf_iter_vars] == [
        "i.outer.j.outer.fused", "k.outer", "i.inner", "k.inner", "j.inner"]  # fmt: skip


def test_a_loaded_schedule_fits_another_copy_of_the_program():
    _, _, first = matmul()
    a, b, second = matmul()
    assert kiln.parse_schedule(scheduled(first).text(), second).text() == TEXT


def test_scans_and_stages_inside_others_are_named():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    half = te.compute((m, n), lambda t, i: state[t - 1, i] * 0.5, name="half")
    update = te.compute((m, n), lambda t, i: half[t, i] + x[t, i], name="update")
    total = te.scan(init, update, state, name="S")
    s = te.create_schedule(total.op)
    outer, inner = s[update].split(update.op.axis[1], factor=8)
    s[half].compute_at(s[update], outer)
    s[total].split(total.op.scan_axis, factor=4)
    s[init].vectorize(s[init].split(init.op.axis[1], factor=4)[1])
    text = s.text()
    assert text == (
        "schedule cpu {\n"
        "  split(update.i, factor=8)\n"
        "  compute_at(half, update.i.outer)\n"
        "  split(S.idx, factor=4)\n"
        "  split(init.i, factor=4)\n"
        "  vectorize(init.i.inner)\n"
        "}\n"
    )
    again = kiln.parse_schedule(text, [x, total])
    assert wire(again, (x, total)) == wire(s, (x, total))


def test_equal_names_are_told_apart():
    a = te.placeholder((8, 4), name="A")
    k, k2 = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="k")
    body = lambda i: te.sum(a[i, k], axis=k) * te.max(a[i, k2], axis=k2)  # noqa: E731
    first = te.compute((8,), body, name="T")
    second = te.compute((8,), lambda i: first[i] + 1, name="T")
    s = te.create_schedule(second.op)
    s[first].unroll(k2)
    s[second].parallel(second.op.axis[0])
    assert s.text() == "schedule cpu {\n  unroll(T.k_1)\n  parallel(T_1.i)\n}\n"
    assert wire(kiln.parse_schedule(s.text(), second), (a, second)) == wire(s, (a, second))


def test_the_line_of_the_file_is_kept():
    a, b, c = matmul()
    s = kiln.parse_schedule("# fast\nschedule cpu {\n  unroll(C.k)\n}", c, file="fast.sched")
    message = encode(s, [a, b, c], "f")
    line = message.schedule.steps[0].line
    assert (message.source_map.files[line.file], line.line) == ("fast.sched", 3)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("schedule cpu { unroll(C.x) }", 1, "unknown axis C.x"),
        ("schedule cpu {\n compute_inline(D) }", 2, "unknown stage D"),
        ("schedule cpu { vectorise(C.k) }", 1,
         "unknown step vectorise; known: " + ", ".join(row[0] for row in STEPS)),
        ("schedule gpu { }", 1, "unknown target gpu; known: cpu, cuda"),
        ("schedule cpu { } schedule cpu { }", 1, "the kernel has two schedules for cpu"),
        ("kernel f", 1, "expected a schedule, but found kernel"),
        ("schedule cpu {\n\n unroll C.k }", 3, "expected ( after unroll, but found C.k"),
        ("schedule cpu { unroll(C.k", 1, "expected , or ) after an argument, but found the end of the file"),
        ("schedule cpu { split(C.i, factor=a) }", 1, "expected an axis or a number, but found a"),
        ("schedule cpu { ?", 1, "unexpected character ?"),
        ("schedule cpu { tile(C.i, 2, 2) }", 1, "tile takes 2 axes, but got 1"),
        ("schedule cpu {\n split(C.i, factor=2)\n unroll(C.i) }", 3,
         "axis i was split into i.outer, i.inner at line 2"),
    ],
)
def test_a_mistake_has_the_line_of_the_file(text, line, message):
    _, _, c = matmul()
    with pytest.raises(kiln.InvalidArgument) as caught:
        kiln.parse_schedule(text, c, file="wrong.sched")
    assert (caught.value.file, caught.value.line) == ("wrong.sched", line)
    assert caught.value.message == message


def test_the_target_must_be_there():
    _, _, c = matmul()
    expect(
        kiln.NotFound,
        "gpu.sched has no schedule for cpu",
        lambda: kiln.parse_schedule("schedule cuda { }", c, file="gpu.sched"),
    )
    expect(
        kiln.InvalidArgument,
        "unknown target vulkan; known: cpu, cuda",
        lambda: te.create_schedule(c.op).text("vulkan"),
    )


def test_steps_that_change_no_loops_are_text_too():
    a = te.placeholder((64, 32), name="A")
    b = te.compute((64, 32), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((64, 32), lambda i, j: b[i, j] - 1, name="C")
    s = te.create_schedule(c.op)
    io, ii = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], io)
    s[b].storage_align(b.op.axis[0], 16, 4)
    s[b].double_buffer()
    s[c].pragma(ii, "auto_unroll_max_step", 16)
    s[c].pragma(io, "parallel_launch_point", True)
    s[b].prefetch(a, b.op.axis[0], 1)
    s[c].software_pipeline(io, 3)
    s[c].tensorize(c.op.axis[1], "x86.fma.f32")
    text = s.text()
    assert text == """\
schedule cpu {
  split(C.i, factor=8)
  compute_at(B, C.i.outer)
  storage_align(B.i, factor=16, offset=4)
  double_buffer(B)
  pragma(C.i.inner, auto_unroll_max_step, value=16)
  pragma(C.i.outer, parallel_launch_point)
  prefetch(A, B.i, offset=1)
  software_pipeline(C.i.outer, stages=3)
  tensorize(C.j, x86.fma.f32)
}
"""
    again = kiln.parse_schedule(text, [a, c])
    assert again.text() == text
    assert wire(again, [a, c]) == wire(s, [a, c])


def test_threads_around_a_scan_are_text_too():
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    scan = te.scan(init, update, state, inputs=[x])
    s = te.create_schedule(scan.op)
    s[scan].env_threads([te.thread_axis((0, 32), "threadIdx.x"), te.thread_axis("threadIdx.y")])
    assert "  env_threads(scan, threadIdx.x, threadIdx.y)\n" in s.text()
    assert kiln.parse_schedule(s.text(), [x, scan]).text() == s.text()

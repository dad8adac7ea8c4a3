"""Steps of a schedule: what they define, and what is refused at the call."""

import inspect

import pytest
from expect import expect

import kiln
from kiln import te
from kiln._encoding.encode import encode


def matmul():
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")
    k = te.reduce_axis((0, 32), name="k")
    return a, b, te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def two_stages():
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1, name="B")
    c = te.compute((64,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    return s, a, b, c


def names(axes):
    return [axis.name for axis in axes]


def test_steps_name_the_axes_they_define():
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    (k,) = s[c].op.reduce_axis
    io, ii = s[c].split(i, factor=16)
    jo, ji = s[c].split(j, nparts=4)
    assert names((io, ii, jo, ji)) == ["i.outer", "i.inner", "j.outer", "j.inner"]
    fused = s[c].fuse(io, ii)
    assert fused.name == "i.outer.i.inner.fused"
    assert names(s[c].tile(jo, k, 2, 4)) == ["j.outer.outer", "k.outer", "j.outer.inner", "k.inner"]
    assert names(s[c].leaf_iter_vars) == [
        "i.outer.i.inner.fused", "j.outer.outer", "k.outer", "j.outer.inner", "k.inner", "j.inner"]


def test_reorder_keeps_the_places():
    _, _, c = matmul()
    s = te.create_schedule(c)
    i, j, k = s[c].leaf_iter_vars
    s[c].reorder(k, i)
    assert names(s[c].leaf_iter_vars) == ["k", "j", "i"]


def test_the_wire_has_ids_in_the_order_of_definition():
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    io, ii = s[c].split(i, factor=16)
    s[c].reorder(j, io, ii, c.op.reduce_axis[0])
    s[c].vectorize(ii)
    line = inspect.currentframe().f_lineno - 1
    message = encode(s, [a, b, c], "mm")
    split, reorder, vectorize = message.schedule.steps
    assert (split.name, split.stage, list(split.axes), list(split.factors)) == ("split", 2, [0], [16])
    assert list(reorder.axes) == [1, 3, 4, 2]
    assert (list(vectorize.axes), vectorize.line.line) == ([4], line)
    assert message.source_map.files[vectorize.line.file] == __file__
    assert list(message.source_map.axes) == ["i", "j", "k"]


def test_compute_at_names_the_consumer_and_its_axis():
    s, a, b, c = two_stages()
    outer, _ = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], outer)
    step = encode(s, [a, c], "f").schedule.steps[-1]
    assert (step.name, step.stage, step.at_stage, step.at_axis) == ("compute_at", 1, 2, 2)


def test_bind_takes_thread_axes():
    s, a, b, c = two_stages()
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, te.thread_axis((0, 8), "threadIdx.x"))
    assert [step.tag for step in encode(s, [a, c], "f").schedule.steps] == ["", "blockIdx.x", "threadIdx.x"]


def test_a_scan_is_scheduled_on_its_own_axis_and_its_cells():
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    scan = te.scan(init, update, state)
    s = te.create_schedule(scan.op)
    s[scan].split(scan.op.scan_axis, factor=4)
    s[update].unroll(s[update].split(update.op.axis[1], factor=4)[1])
    assert [step.name for step in encode(s, [x, scan], "f").schedule.steps] == ["split", "split", "unroll"]


def split_twice():
    s, a, b, c = two_stages()
    (i,) = c.op.axis
    s[c].split(i, factor=4)
    s[c].split(i, factor=4)


def fused_then_used():
    _, _, c = matmul()
    s = te.create_schedule(c)
    i, j = c.op.axis
    s[c].fuse(i, j)
    s[c].parallel(j)


def of_another_stage():
    s, a, b, c = two_stages()
    s[c].vectorize(b.op.axis[0])


def of_another_schedule():
    s, a, b, c = two_stages()
    other, *_ = two_stages()
    s[b].compute_at(other.stages[2], other.stages[2].op.axis[0])


def attached_to_a_split_axis():
    s, a, b, c = two_stages()
    s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], c.op.axis[0])


def step_on(action):
    def run():
        s, a, b, c = two_stages()
        action(s, s[c], c.op.axis[0])
    return run


MISTAKES = [
    (fused_then_used, f"axis j was fused into i.j.fused at line {fused_then_used.__code__.co_firstlineno + 4}"),
    (split_twice, f"axis i was split into i.outer, i.inner at line {split_twice.__code__.co_firstlineno + 3}"),
    (attached_to_a_split_axis,
     f"axis i of C was split at line {attached_to_a_split_axis.__code__.co_firstlineno + 2}; compute B at "
     "i.outer or i.inner"),
    (of_another_stage, "axis i belongs to stage B, not to C"),
    (of_another_schedule, "compute_at: C is a stage of another schedule"),
    (step_on(lambda s, c, i: c.split(i, factor=0)), "split(i, factor=0): the factor must be at least 1"),
    (step_on(lambda s, c, i: c.split(i, nparts=-4)), "split(i, nparts=-4): the parts must be at least 1"),
    (step_on(lambda s, c, i: c.split(i, factor=2.5)),
     "split(i, factor=2.5): the factor must be an integer constant"),
    (step_on(lambda s, c, i: c.split(i)), "split(i): give factor= or nparts=, not neither"),
    (step_on(lambda s, c, i: c.split(i, 2, 3)), "split(i): give factor= or nparts=, not both"),
    (step_on(lambda s, c, i: c.reorder(i, i)), "reorder names axis i twice"),
    (step_on(lambda s, c, i: c.vectorize("i")), "vectorize takes axes of C, which has i, but got 'i' of type str"),
    (step_on(lambda s, c, i: c.bind(i, 3)),
     "bind(i): the second argument must be a te.thread_axis, but is int"),
    (step_on(lambda s, c, i: c.bind(i, "threadIdx.q")),
     "unknown thread axis threadIdx.q; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
     "threadIdx.y, threadIdx.z, vthread"),
    (lambda: te.thread_axis("warp"),
     "unknown thread axis warp; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, "
     "threadIdx.z, vthread"),
    (step_on(lambda s, c, i: s[te.placeholder((1,), name="Z")]),
     "Z is not part of this schedule, which has A, B, C"),
    (lambda: te.create_schedule(3), "create_schedule takes a tensor, but got int"),
    (lambda: encode(two_stages()[0], None, "f"),
     "a schedule needs the list of arguments: build(s, [A, B, C])"),
    (lambda: encode([], None, "f"),
     "f has no arguments: list its placeholders and what it computes from them, as in build([A, B, C])"),
    (lambda: encode(two_stages()[0], [], "f"),
     "f has no arguments: list its placeholders and what it computes from them, as in build(s, [A, B, C])"),
    (lambda: encode([3], None, "f"), "argument 0 of f must be a tensor, but is int"),
    (lambda: encode(3, None, "f"),
     "the kernel must be a schedule and its arguments, or a list of tensors, but is int"),
]  # fmt: skip


@pytest.mark.parametrize("mistake, message", MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_a_sentence(mistake, message):
    assert expect(kiln.InvalidArgument, message, mistake).line > 0


def test_a_step_on_what_no_argument_needs_is_refused_at_its_line():
    s, a, b, c = two_stages()
    s[c].parallel(c.op.axis[0])
    line = inspect.currentframe().f_lineno - 1
    error = expect(kiln.InvalidArgument, "parallel schedules C, which no argument of f is computed from",
                   lambda: encode(s, [a, b], "f"))
    assert (error.file, error.line) == (__file__, line)


@pytest.mark.parametrize("step", ["set_axis_separators"])
def test_later_steps_say_so(step):
    s, a, b, c = two_stages()
    expect(kiln.Unsupported, f"the step {step} is not part of this version of Kiln; leave it out, memory is one row of elements",
           lambda: getattr(s[c], step)(1, 2, 3))


def test_an_offset_is_less_than_its_factor():
    s, a, b, c = two_stages()
    axis = b.op.axis[0]
    expect(kiln.InvalidArgument, f"storage_align({axis.name}, factor=16, offset=16): the offset is what is left over of "
           "the factor, so it must be from 0 to 15", lambda: s[b].storage_align(axis, 16, 16))


def test_an_intrinsic_is_named():
    s, a, b, c = two_stages()
    axis = b.op.axis[0]
    expect(kiln.InvalidArgument, f"tensorize({axis.name}) takes the name of an intrinsic, such as 'x86.dot.u8s8s32', "
           "but got object", lambda: s[b].tensorize(axis, object()))

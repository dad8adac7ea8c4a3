"""The messages that definitions become."""

import pytest

import kiln
from kiln import te
from kiln._encoding.encode import encode


def earlier_only(definition):
    """Whether every reference points to what stands before it."""
    for number, e in enumerate(definition.expressions):
        kind = e.WhichOneof("kind")
        below = {"operation": lambda: e.operation.operands, "cast": lambda: [e.cast.operand],
                 "read": lambda: e.read.indices, "reduction": lambda: e.reduction.sources}
        assert all(child < number for child in below.get(kind, list)()), e
        if kind == "axis":
            assert e.axis < len(definition.axes)
    for number, stage in enumerate(definition.stages):
        reads = []
        if stage.WhichOneof("kind") == "scan":
            scan = stage.scan
            reads = [*scan.init, *scan.update, *scan.state, *scan.inputs]
        assert all(t.stage < number for t in reads)
    return True


def test_a_scan():
    m, n = te.var("m"), te.size_var("n")
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: x[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    scan = te.scan(init, update, state, inputs=[x])
    kernel = encode([x, scan], None, "myscan")
    definition, names = kernel.definition, kernel.source_map
    assert earlier_only(definition)
    assert list(names.variables) == ["m", "n"]
    assert [v.nonnegative for v in definition.variables] == [False, True]
    assert list(names.stages) == ["X", "placeholder", "compute", "compute_1", "scan"]
    assert [s.WhichOneof("kind") for s in definition.stages] == [
        "placeholder", "placeholder", "compute", "compute", "scan"]
    assert [(p.stage, p.output) for p in definition.parameters] == [(0, 0), (4, 0)]
    assert definition.axes[definition.stages[4].scan.axis].kind == 3
    assert names.axes[definition.stages[4].scan.axis] == "scan.idx"
    assert names.stage_lines[2].line == init.op.line > 0


def test_one_reduction_axis_in_two_stages_becomes_two():
    a = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="C")
    kernel = encode([a, b, c], None, "f")
    assert earlier_only(kernel.definition)
    assert [axis.kind for axis in kernel.definition.axes] == [1, 2, 1, 2]
    assert list(kernel.source_map.axes) == ["i", "k", "i", "k"]


def test_a_reduction_axis_may_depend_on_another():
    a = te.placeholder((4, 4), name="A")

    def lower_triangle(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(a[i, k], axis=k)

    kernel = encode([a, te.compute((4,), lower_triangle, name="B")], None, "f")
    assert earlier_only(kernel.definition)
    edge = kernel.definition.expressions[kernel.definition.axes[1].extent]
    assert edge.operation.operator == "add"  # i + 1; less the 0 it begins at


def test_two_outputs_of_one_stage():
    a = te.placeholder((4,), name="A")
    b, c = te.compute((4,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    definition = encode([a, c], None, "f").definition
    assert len(definition.stages[1].compute.bodies) == 2
    assert [(p.stage, p.output) for p in definition.parameters] == [(0, 0), (1, 1)]


def test_casts_and_constants():
    a = te.placeholder((4,), "int8", name="A")
    big = te.const((1 << 64) - 1, "uint64")
    b = te.compute((4,), lambda i: a[i].astype("uint64") + big, name="B")
    definition = encode([a, b], None, "f").definition
    kinds = {e.WhichOneof("kind") for e in definition.expressions}
    assert "cast" in kinds
    assert -1 in [e.integer.value for e in definition.expressions if e.WhichOneof("kind") == "integer"]


def test_a_deep_expression_is_encoded():
    a = te.placeholder((4,), name="A")

    def body(i):
        total = a[i]
        for _ in range(3000):
            total = total + 1
        return total

    assert earlier_only(encode([a, te.compute((4,), body)], None, "f").definition)


def test_shared_parts_are_sent_once():
    a = te.placeholder((4,), name="A")

    def body(i):
        value = te.exp(a[i])
        for _ in range(20):
            value = value * value
        return value

    assert len(encode([a, te.compute((4,), body)], None, "f").definition.expressions) < 40


@pytest.mark.parametrize("target, name, arch", [
    (None, "llvm", ""), ("cpu", "llvm", ""), ("llvm -mcpu=znver4", "llvm", "znver4"),
    ("cuda", "cuda", ""), ("cuda -arch=sm_90", "cuda", "sm_90"),
    (kiln.target.Target("cuda", host="llvm"), "cuda", ""),
])
def test_targets(target, name, arch):
    assert kiln.target.as_target(target) == (name, arch)


def test_a_target_of_a_with_statement():
    with kiln.target.Target("cuda"):
        assert kiln.target.as_target(None) == ("cuda", "")
    assert kiln.target.as_target(None) == ("llvm", "")

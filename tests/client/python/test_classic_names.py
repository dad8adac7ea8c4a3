"""Names of classic te that are not part of a kernel's description: contexts, targets, devices, refusals."""

import warnings

import numpy as np
import pytest
from expect import expect

import kiln as tvm
from kiln import te, tir, topi

N = te.var("n")
A = te.placeholder((N,), name="A")


def doubled():
    return te.compute((N,), lambda i: A[i] * 2, name="B")


# Tensors, axes and schedules.


def test_tensors_are_keys_and_compare_by_what_they_are():
    b = doubled()
    c = doubled()
    assert b == b.op.output(0) and b != c and b.same_as(b.op.output(0))
    assert {b: 1, c: 2}[b.op.output(0)] == 1 and b in [c, b]
    pair = te.compute((N,), lambda i: (A[i], A[i] + 1), name="P")
    assert pair[0] != pair[1] and pair[0].op is pair[1].op
    assert (pair[1].value_index, pair[1].op.num_outputs, pair[1].op.name) == (1, 2, "P")
    assert b is not None and not b == 1


def test_finished_axes_are_found_in_lists():
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8, 4), lambda i, j: te.sum(A[i * j + k], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    assert j in s[c].leaf_iter_vars and s[c].leaf_iter_vars.index(k) == 2
    outer, inner = s[c].split(j, factor=2)
    assert j not in s[c].leaf_iter_vars and j in s[c].all_iter_vars
    assert s[c].leaf_iter_vars == [i, outer, inner, k]
    assert [a.iter_type for a in (i, k)] == [0, 2] and i.same_as(i.var)


def test_axes_under_description_have_no_truth_value():
    with pytest.raises(tvm.InvalidArgument) as error:
        te.compute((4, 4), lambda i, j: 1 if i == j else 0, name="E")
    assert error.value.reason == "TRUTH_VALUE"


def test_an_operation_tells_what_it_is_made_of():
    k = te.reduce_axis((0, 4), name="k")
    b = doubled()
    c = te.compute((8,), lambda i: te.sum(A[i] * b[k], axis=k), name="C", tag="mine", attrs={"a": 1})
    assert c.op.input_tensors == [A, b] and c.op.reduce_axis == [k]
    assert isinstance(c.op, te.ComputeOp) and isinstance(A.op, te.PlaceholderOp)
    assert isinstance(c.op.body[0], tvm.expr.PrimExpr) and c.op.tag == "mine" and c.op.attrs == {"a": 1}
    state = te.placeholder((N, 4), name="state")
    init = te.compute((1, 4), lambda _, i: 0.0)
    update = te.compute((N, 4), lambda t, i: state[t - 1, i] + 1)
    scan = te.scan(init, update, state, name="S")
    assert scan.op.scan_axis.name == "S.idx" and scan.op.input_tensors == [init, update]
    assert scan.op.state_placeholder == [state] and isinstance(scan.op, te.ScanOp)


def test_a_schedule_of_several_outputs():
    b, c = doubled(), doubled()
    s = te.create_schedule([b.op, c.op])
    assert s.outputs == [b.op, c.op] and [stage.op for stage in s.stages] == [A.op, b.op, c.op]
    assert s[b] is s[b.op] and s[c].is_output and not s[A].is_output and b in s
    assert s.stage_map[c.op] is s[c]


def test_tags():
    with te.tag_scope("mine"):
        b = doubled()
    assert b.op.tag == "mine" and doubled().op.tag == ""

    @tvm.tag_scope("other")
    def make():
        return doubled()

    assert make().op.tag == "other"

    def nested():
        with te.tag_scope("a"), te.tag_scope("b"):
            pass

    expect(tvm.InvalidArgument, "tag_scope b stands inside tag_scope a", nested)


def test_thread_axes_with_a_range():
    b = te.compute((256,), lambda i: A[i], name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(inner, te.thread_axis((0, 32), "threadIdx.x"))
    tx = te.thread_axis(tvm.ir.Range(0, 16), "threadIdx.y", name="ty")
    assert (tx.name, tx.thread_tag) == ("ty", "threadIdx.y")
    expect(tvm.InvalidArgument,
           "bind(i.outer): threadIdx.y was made for 16 iterations, but i.outer has 8; leave the range out, "
           "or split by 16", lambda: s[b].bind(outer, tx))


def test_ranges():
    k = te.reduce_axis(tvm.Range(2, 6), name="k")
    assert (k.dom.min.value, k.dom.extent.value) == (2, 4)
    assert tvm.ir.Range(3).extent.value == 3 and te.Range is tvm.ir.Range
    assert tvm.ir.Range.from_min_extent(1, 2).extent.value == 2
    expect(tvm.InvalidArgument, "the range (5, 2) ends before it begins", lambda: tvm.Range(5, 2))


def test_known_sizes_are_ints_with_a_value():
    a = te.placeholder((3, N), name="A")
    assert a.shape[0] == 3 and a.shape[0].value == 3 and isinstance(a.shape[0], int)
    assert a.shape[1] == N and a.op.shape is a.shape


# Whole tensors.


def test_operators_of_whole_tensors(daemon):
    a, b = te.placeholder((3, 4), name="A"), te.placeholder((4,), name="B")
    x, y = np.arange(12, dtype="float32").reshape(3, 4) - 5, np.float32([1, 2, 4, 8])
    pairs = [
        (a + b, x + y), (b - a, y - x), (a * 2 / b, x * 2 / y), (1 - a, 1 - x), (2 / b, 2 / y), (-a, -x),
        (abs(a) ** 2, x**2), (a < b, x < y), ((a >= 0) & (a < b), (x >= 0) & (x < y)), (b**0.5, y**0.5),
    ]  # fmt: skip
    results = tvm.build([a, b, *(tensor for tensor, _ in pairs)])(x, y)
    for (tensor, expected), result in zip(pairs, results):
        assert tensor.shape == expected.shape and tensor.dtype == str(expected.dtype)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
    assert (a + b).name == "T_add"


def test_sizes_and_single_elements_beside_whole_tensors(daemon):
    n, A, B = te.var("n"), te.placeholder((3, 4), name="A"), te.placeholder((4,), name="B")
    for made, tag in ((n + A, "elemwise"), (A - n, "elemwise"), (A[0, 1] * A, "elemwise"), (A + B, "broadcast"), (n < A, "elemwise")):
        assert isinstance(made, te.Tensor) and made.op.tag == tag
    f = tvm.build([n, A, B, n - A * B + n * 2])
    x, y = (np.random.default_rng(0).uniform(size=shape).astype("float32") for shape in ((3, 4), (4,)))
    np.testing.assert_allclose(f(5, x, y).numpy(), 5 - x * y + 10, rtol=1e-6)
    expect(tvm.InvalidArgument, "tensor B of shape (4,) stands in an expression without indices; read an element, as in B[i], "
           "inside te.compute", lambda: te.compute((4,), lambda i: i + B))


def test_gradients_are_checked_by_differences():
    x, y = np.array([1.0, 2.0], "float32"), np.array([3.0, 4.0], "float32")
    function = lambda a, b: (a * a * b).sum()  # noqa: E731
    tvm.testing.check_numerical_grads(function, [x, y], [2 * x * y, x * x])
    with pytest.raises(AssertionError, match="gradient of input 1"):
        tvm.testing.check_numerical_grads(function, [x, y], [2 * x * y, x])


def test_whole_tensors_inside_a_compute_are_a_mistake():
    a = te.placeholder((4,), name="A")
    message = ("tensor A of shape (4,) stands in an expression without indices; read an element, as in A[i], "
               "inside te.compute")
    expect(tvm.InvalidArgument, message, lambda: te.compute((4,), lambda i: a + 1))
    i = te.reduce_axis((0, 4), name="i")
    expect(tvm.InvalidArgument, message, lambda: a + i)
    expect(tvm.InvalidArgument,
           "add of tensors: A of shape (4,) and C of shape (3,) do not broadcast to one shape",
           lambda: a + te.placeholder((3,), name="C"))


# Expressions by the names of tir.


def test_nodes_and_intrinsics_by_name():
    x = te.var("x", "float32")
    assert repr(tir.Mul(x, tir.Add(x, tir.FloatImm("float32", 1)))) == repr(x * (x + 1))
    assert repr(tir.call_intrin("float32", "tir.exp", x)) == repr(te.exp(x))
    assert repr(tvm.call_pure_intrin("float32", "exp", x)) == repr(te.exp(x))
    assert tir.IntImm("int8", 3).dtype == "int8" and isinstance(te.const(1), tir.IntImm)
    assert isinstance(te.const(1.0), tvm.expr.FloatImm) and not isinstance(x, (tir.IntImm, tir.FloatImm))
    assert tvm.convert([1, 2.5])[1].dtype == "float32"
    expect(tvm.InvalidArgument, "tir.Add takes 2 operands, but got 1", lambda: tir.Add(x))
    expect(tvm.InvalidArgument, "there is no intrinsic tir.foo; docs/language.md lists them",
           lambda: tir.call_intrin("float32", "tir.foo", x))


# Contexts that change nothing.


def test_known_options_are_taken_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}) as context:
            assert tvm.transform.PassContext.current() is context and context.opt_level == 3
        with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=False):
            pass


def test_unknown_options_are_noted_at_the_users_line():
    with pytest.warns(UserWarning) as noted:
        tvm.transform.PassContext(config={"tir.foo": 1})
        tvm.build_config(foo=1, bar=2)
    assert [str(w.message) for w in noted] == [
        "PassContext: tir.foo is no option that Kiln knows; nothing is changed by it",
        "build_config: bar, foo are no options that Kiln knows; nothing is changed by it",
    ]
    assert {w.filename for w in noted} == {__file__}


# Targets and devices.


@pytest.mark.parametrize("target, text", [
    ("llvm", "llvm"),
    ("llvm -mcpu=znver4 -mattr=+avx2 -num-cores 4", "llvm -mcpu=znver4"),
    ("llvm -mcpu core-avx2", "llvm -mcpu=core-avx2"),
    ({"kind": "cuda", "arch": "sm_90", "max_num_threads": 1024}, "cuda -mcpu=sm_90"),
    ('{"kind": "llvm", "mcpu": "znver4"}', "llvm -mcpu=znver4"),
])  # fmt: skip
def test_targets(target, text):
    assert str(tvm.target.create(target)) == text.replace("cuda -mcpu", "cuda -arch")
    assert tvm.target.Target(target).kind.name == text.split()[0]


def test_targets_by_name():
    assert str(tvm.target.cuda(options="-arch=sm_80")) == "cuda -arch=sm_80"
    assert str(tvm.target.llvm(options=["-mcpu=znver4"])) == "llvm -mcpu=znver4"
    assert tvm.target.Target("cuda").thread_warp_size == 32
    expect(tvm.InvalidArgument, "unknown option -mcpuu=x of target llvm; known: -mcpu=, -arch=",
           lambda: tvm.target.Target("llvm -mcpuu=x"))
    expect(tvm.InvalidArgument, 'the target {"kind" starts as JSON does, but is none',
           lambda: tvm.target.Target('{"kind"'))


def test_devices(daemon):
    cpu = tvm.device("llvm", 0)
    assert cpu.exist and cpu == tvm.context("cpu") and cpu.device_name and cpu.total_global_memory
    assert cpu.max_threads_per_block is None and tvm.cuda(0).max_threads_per_block == 1024
    cpu.sync()
    assert tvm.runtime.enabled("llvm") and tvm.module.enabled("cpu")
    assert not tvm.runtime.enabled("opencl") and not tvm.runtime.enabled("")
    assert tvm.runtime.enabled("cuda") == tvm.cuda(0).exist
    assert tvm.runtime.Module is tvm.runtime.PackedFunc
    expect(tvm.Unsupported, "Kiln has no opencl devices; its devices are cpu and cuda",
           lambda: tvm.nd.empty((1,), "float32", tvm.opencl(0)))


@pytest.mark.parametrize("name", "opencl vulkan metal rocm hexagon webgpu".split())
def test_devices_that_kiln_lacks_do_not_exist(daemon, name):
    device = tvm.device(name, 0)
    assert not device.exist and device.device_name is None and repr(device) == f"{name}(0)"
    assert not hasattr(tvm, name) or getattr(tvm, name)() == device


def test_axes_of_operations():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    assert isinstance(b.op.axis[0], te.IterVar) and te.IterVar is tvm.tir.IterVar
    message = "A is given and has no loops of its own, so no axis; s.cache_read(A, ...) makes a stage that has"
    expect(tvm.UnknownName, message, lambda: a.op.axis)
    assert not hasattr(a.op, "axis")


def test_arrays_from_elsewhere(daemon):
    a = tvm.nd.from_dlpack(np.arange(3, dtype="float32"))
    b = tvm.nd.empty((3,), "float32", ctx=tvm.cpu(0))
    assert a.copyto(b) is b and b.asnumpy().tolist() == [0, 1, 2] and b.ctx == tvm.device("llvm", 0)
    assert a.copyto(tvm.cpu(0)).numpy().tolist() == [0, 1, 2]


def test_an_unknown_cpu_is_an_error_and_the_daemon_lives(daemon):
    with pytest.raises(tvm.Unsupported) as error:
        tvm.build([A, doubled()], target="llvm -mcpu=notacpu")
    assert "notacpu" in error.value.message and "\n" not in error.value.message
    assert tvm.build([A, doubled()], target="llvm")(np.ones(3, "float32")).numpy().tolist() == [2, 2, 2]


# Helpers of tests.


def test_helpers_of_tests(daemon):
    assert ("llvm", tvm.cpu(0)) in tvm.testing.enabled_targets()
    assert tvm.testing.device_enabled("llvm -mcpu=znver4") and not tvm.testing.device_enabled("opencl")
    ran = []

    @tvm.testing.requires_llvm
    @tvm.testing.uses_gpu
    def needs_a_cpu():
        ran.append("cpu")

    @tvm.testing.requires_gpu()
    def needs_a_gpu():
        ran.append("gpu")

    @tvm.testing.parametrize_targets("llvm")
    def every(target, dev):
        ran.append((target, dev))

    needs_a_cpu()
    every()
    if not tvm.runtime.enabled("cuda"):
        with pytest.raises(BaseException, match="the daemon has no device for cuda"):
            needs_a_gpu()
    assert ran[0] == "cpu" and ran[1] == ("llvm", tvm.cpu(0))


# What is refused, and what to use instead.


REFUSED = [
    (lambda: te.extern((4,), [A], lambda i, o: None), "te.extern runs code that is not part of the definition"),
    (lambda: te.create_prim_func([A]), "te.create_prim_func makes a TensorIR function, which Kiln has not; give"),
    (lambda: te.hybrid.script, "te.hybrid.script compiles the text of a Python function, which Kiln does not"),
    (lambda: tvm.rpc.connect, "rpc.connect is not needed: the daemon is the remote end; kiln.connect("),
    (lambda: tvm.ir_pass.Simplify, "ir_pass.Simplify works on the compiler's own trees, which stay in the"),
    (lambda: tir.call_packed("tvm.contrib.f", A[0]), "tir.call_packed runs code that is not part of the definition"),
    (lambda: tvm.get_global_func("f"), "get_global_func takes part in a registry of functions, which Kiln has"),
    (lambda: tvm.build([A, doubled()], binds={A: None}),
     "binds= of the kernel describes the memory of its arguments by hand; Kiln takes arguments of any strides and"),
]  # fmt: skip


@pytest.mark.parametrize("action, start", REFUSED, ids=[start.split()[0] for _, start in REFUSED])
def test_what_kiln_has_not_is_refused_in_one_sentence(action, start):
    with pytest.raises(tvm.Unsupported) as error:
        action()
    assert error.value.message.startswith(start) and "\n" not in error.value.message
    assert error.value.file == __file__


# Of stages and modules.


def test_stages_say_what_became_of_them():
    b = doubled()
    c = te.compute((N,), lambda i: b[i] + 1, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].vectorize(inner)
    s[b].compute_at(s[c], outer)
    s[b].set_scope("shared")
    assert (s[b].scope, s[c].scope, s[b].group) == ("shared", "", None)
    assert (s[b].attach_type, s[b].attach_stage, s[b].attach_ivar) == (4, s[c], outer)
    assert (s[c].attach_type, s[c].attach_stage, s[c].attach_ivar) == (1, None, None)
    (split,) = s[c].relations
    assert isinstance(split, te.Split) and (split.outer, split.inner, split.factor) == (outer, inner, 8)
    facts = s[c].iter_var_attrs
    assert facts[outer].bind_thread.thread_tag == "blockIdx.x" and facts[inner].iter_type == 6


def test_relations_say_how_axes_came_about():
    c = te.compute((4, 9), lambda i, j: i * j, name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    xo, yo, xi, yi = s[c].tile(i, j, 2, 3)
    fused = s[c].fuse(xo, yo)
    first, second, third = s[c].relations
    assert (first.parent, first.outer, first.inner, first.factor, first.nparts) == (i, xo, xi, 2, None)
    assert (second.parent, second.outer, second.inner) == (j, yo, yi)
    assert isinstance(third, te.schedule.Fuse) and (third.outer, third.inner, third.fused) == (xo, yo, fused)
    assert str(s[c].relations) == (
        "[split(parent=i, outer=i.outer, inner=i.inner, factor=2), split(parent=j, outer=j.outer, inner=j.inner, "
        "factor=3), fuse(i.outer, j.outer, fused=i.outer.j.outer.fused)]"
    )
    assert all(isinstance(axis, te.IterVar) for axis in (i, fused, te.thread_axis("threadIdx.x")))
    assert i.iter_type == te.IterVar.DataPar and fused.iter_type == tir.IterVar.DataPar


def test_a_loop_of_one_iteration():
    c = te.compute((), lambda: 1.0, name="C")
    s = te.create_schedule(c.op)
    fused = s[c].fuse(*c.op.axis)
    assert s[c].leaf_iter_vars == [fused] and s[c].relations[0].iter is fused
    outer, inner = s[c].split(fused, factor=32)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].reorder(inner, outer)
    s[c].vectorize(inner)
    assert s[c].leaf_iter_vars == [inner, outer] and s.steps == []


def test_an_intrinsic_of_ones_own_is_its_definition():
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * 2, name="b")
    madd = te.decl_tensor_intrin(b.op, lambda ins, outs: 1 / 0, name="madd", binds={a: tir.decl_buffer((4,), name="ab")})
    c = te.compute((16,), lambda i: A[i] * 2, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].tensorize(inner, madd)
    s[c].pragma(outer, "import_llvm", tvm.contrib.clang.create_llvm("int f();"))
    assert [step.name for step in s.steps] == ["split"] and str(madd) == "TensorIntrin(madd)"
    assert tir.decl_buffer((4,), "int8", "x").scope() == "global" and "x, (4,), int8" in str(tir.decl_buffer((4,), "int8", "x"))


def test_definitions_are_saved_as_json():
    k = te.reduce_axis((0, N), name="k")
    b = te.compute((4,), lambda i: te.sum(A[k] * i, axis=k), name="B")
    again = tvm.ir.load_json(tvm.ir.save_json(b))
    assert (again.name, again.shape, str(again.op.body), str(again.op.reduce_axis)) == (
        "B", (4,), str(b.op.body), str(b.op.reduce_axis))
    both = tvm.load_json(tvm.save_json([b, A]))
    assert [each.name for each in both] == ["B", "A"] and both[0].op.input_tensors == [both[1]]
    state = te.placeholder((N, 4), name="state")
    init = te.compute((1, 4), lambda _, i: 0.0)
    scan = te.scan(init, te.compute((N, 4), lambda t, i: state[t - 1, i] + A[t]), state, name="S")
    assert tvm.load_json(tvm.save_json(scan)).op.kind == "scan"
    assert isinstance(tvm.load_json(tvm.save_json(scan.op)), te.ScanOp)


def test_sizes_lose_what_changes_nothing():
    k = te.reduce_axis((0, N))
    assert str(k.dom) == "range(min=0, extent=n)" and k.dom.extent is N
    assert te.compute((N - 0, N * 1), lambda i, j: 0.0).shape == (N, N)
    assert str(tvm.topi.strided_slice(A, [0], [N]).shape) == "(n,)" and str(tvm.Range(0, N).extent) == "n"


def test_injective_stages_are_inlined_on_request():
    b = doubled()
    c = te.compute((N,), lambda i: b[i] + 1, name="C")
    s = te.create_schedule(c.op)
    te.schedule.AutoInlineInjective(s)
    assert [(step.name, step.stage.op.name) for step in s.steps] == [("compute_inline", "B")]


def test_modules_that_held_parts_of_te():
    assert isinstance(doubled().op, te.tensor.ComputeOp) and isinstance(A.op, tvm.tensor.PlaceholderOp)
    assert not isinstance(doubled().op, (te.ExternOp, te.HybridOp, te.TensorComputeOp))
    assert tvm.api.convert([1])[0].dtype == "int32" and tvm.intrin.exp is te.exp
    assert tvm.TVMError is tvm.error.TVMError is tvm.Error and tvm.TVMContext is tvm.Device


def test_thread_axes_by_their_other_names():
    tx = te.thread_axis((0, 32), "threadIdx.x")
    assert te.thread_axis("cthread").thread_tag == "vthread"
    s = te.create_schedule(doubled().op)
    s.stages[-1].set_store_predicate(tx.var.equal(0))
    assert s.steps == []


def test_quotients_rounded_up():
    assert str(tir.ceildiv(N, 4)) == "floordiv(n + 3, 4)"


@pytest.mark.parametrize("call, message", [
    (lambda: tvm.autotvm.task, "autotvm.task searches for schedules by hand; leave the schedule out, and the daemon "
                               "chooses one, or call kiln.tune(...), which measures schedules there and keeps the "
                               "fastest for every later build"),
    (lambda: tvm.relay.var("x"), "relay.var describes whole networks; Kiln compiles kernels, of tensors made with "
                                 "kiln.te and kiln.topi"),
    (lambda: tvm.IRModule(), "IRModule is TensorIR, which Kiln has not; write the tensors with te.compute and te.scan"),
    (lambda: tvm.ir_builder.create(), "ir_builder.create writes loops by hand, which Kiln makes itself; write the "
                                      "tensors with te.compute and te.scan, and say how they run with a schedule"),
    (lambda: topi.testing.get_elemwise_schedule, "topi.testing.get_elemwise_schedule has what topi's own tests use; write "
                                                 "what is expected in numpy, and leave the schedule out"),
    (lambda: te.schedule.CreateReadGraph([]), "te.CreateReadGraph shows the compiler's own trees, which stay in the daemon; "
                                              "kiln.lower(s, args) prints the loops"),
    (lambda: te.schedule.InferBound(None), "te.InferBound shows the compiler's own trees, which stay in the daemon; "
                                           "kiln.lower(s, args) prints the loops"),
])  # fmt: skip
def test_what_is_not_part_of_kiln_says_what_to_do(call, message):
    with pytest.raises(tvm.Unsupported) as caught:
        call()
    assert caught.value.message == message

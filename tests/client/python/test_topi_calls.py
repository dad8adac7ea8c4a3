"""kiln.topi without a daemon: shapes, names and mistakes. Its numbers are tested in tests/e2e."""

import pytest
from expect import expect

import kiln as tvm
from kiln import te, topi

n, m = te.var("n"), te.var("m")


def tensor(*shape, dtype="float32", name="A"):
    return te.placeholder(shape, dtype, name)


A, B = tensor(4, 5), tensor(3, 5, name="B")
IMAGES, FILTERS = tensor(2, 3, 9, 9, name="X"), tensor(4, 2, 3, 3, name="F")


def test_shapes_of_sizes_stay_symbolic():
    x = tensor(n, m)
    assert topi.transpose(x).shape == (m, n)
    assert str(topi.flatten(tensor(n, 2, m)).shape[1]) == "2 * m"
    assert str(topi.concatenate([x, x], 1).shape[1]) == "m + m"
    assert topi.nn.pad(x, (1, 0)).shape[1] is m
    assert str(topi.nn.conv2d(tensor(1, 3, n, m), tensor(4, 3, 3, 3)).shape) == (
        "(1, 4, n - 2, m - 2)")


def test_an_operator_of_numbers_alone_is_an_expression():
    assert str(topi.add(n, 1)) == "n + 1"


def test_split_gives_a_list():
    assert [part.shape for part in topi.split(tensor(6, 2), 3)] == [(2, 2)] * 3
    assert [part.shape for part in topi.split(tensor(7, 2), [1, 3])] == [(1, 2), (2, 2), (4, 2)]


def test_batch_norm_gives_the_statistics_too():
    v = [tensor(3, name=name) for name in "gbmv"]
    result = topi.nn.batch_norm(IMAGES, *v)
    assert result[0].shape == IMAGES.shape and result[1:] == v[2:]


def test_the_schedules_of_topi_are_empty_schedules():
    C = topi.nn.relu(A)
    for module, name in (
        (topi.generic, "schedule_injective"), (topi.x86, "schedule_conv2d_nchw"),
        (topi.cuda, "schedule_reduce"), (tvm.topi.generic, "schedule_extern"),
    ):  # fmt: skip
        for outs in (C, [C]):
            s = getattr(module, name)(outs)
            assert s.steps == [] and s[C].op is C.op
    s = te.create_schedule(C.op)
    assert topi.generic.schedule_injective_from_existing(s, C) is s
    with pytest.raises(AttributeError):
        topi.generic.compute_conv2d


def test_utils():
    from kiln.topi.utils import get_const_int, get_const_tuple, prod

    assert get_const_tuple((1, te.const(3, "int64"))) == (1, 3)
    assert get_const_int(te.const(3)) == 3
    assert prod([2, 3]) == 6
    expect(tvm.InvalidArgument, "n is known at the call only", lambda: get_const_int(n))


MISTAKES = [
    ("topi.nn.attention: A has shape (6,), but queries, keys and values must have the same number of dimensions, at least 2",
     lambda: topi.nn.attention(tensor(5, 4), tensor(6, 4), tensor(6))),
    ("topi.nn.attention: K has shape (6, 4) and V (7, 4), but they must have one dimension -2",
     lambda: topi.nn.attention(tensor(5, 4), te.placeholder((6, 4), name="K"), te.placeholder((7, 4), name="V"))),
    ("topi.nn.embedding: the table A has shape (6,), but must have two dimensions: a row for each word",
     lambda: topi.nn.embedding(te.placeholder((4,), "int32"), tensor(6))),
    ("topi.nn.gru takes data of 3 dimensions and weights of 2, but got (5, 2), (9, 2) and (9, 3)",
     lambda: topi.nn.gru(tensor(5, 2), tensor(9, 2), tensor(9, 3))),
    ("topi.nn.conv2d_nchw: stride is [1, 2, 3], but must be one number or 2 of them",
     lambda: topi.nn.conv2d(IMAGES, tensor(4, 3, 3, 3), strides=[1, 2, 3])),
    ("topi.add: A of shape (4, 5) and B of shape (3, 5) do not broadcast to one shape",
     lambda: topi.add(A, B)),
    ("topi.where: A of shape (4, 5) and B of shape (3, 5) do not broadcast to one shape",
     lambda: topi.where(A, B, 0.0)),
    ("topi.exp takes 1 operand, but got 2", lambda: topi.exp(A, A)),
    ("topi.exp takes a tensor, but got list", lambda: topi.exp([1.0])),
    ("topi.sum: axis 2 is out of range; A has 2 dimensions", lambda: topi.sum(A, 2)),
    ("topi.max: axis 1.5 is no integer", lambda: topi.max(A, 1.5)),
    ("topi.argmax: axis (0, -2) names a dimension twice", lambda: topi.argmax(A, (0, -2))),
    ("topi.cumsum: axis 2 is out of range; A has 2 dimensions", lambda: topi.cumsum(A, 2)),
    ("topi.broadcast_to: A has shape (4, 5), which does not broadcast to (4, 6)",
     lambda: topi.broadcast_to(A, (4, 6))),
    ("topi.transpose: axes (0, 0) must name each of the 2 dimensions of A once",
     lambda: topi.transpose(A, (0, 0))),
    ("topi.squeeze: dimension 1 of A is 5, but must be 1", lambda: topi.squeeze(A, 1)),
    ("topi.reshape: A of shape (4, 5) does not fit (3, 7); their numbers of elements differ",
     lambda: topi.reshape(A, (3, 7))),
    ("topi.reshape: A of shape (n, m) does not fit (m, m); their numbers of elements may differ",
     lambda: topi.reshape(tensor(n, m), (m, m))),
    ("topi.reshape: A of shape (4, 5) does not fit (-1, 3)", lambda: topi.reshape(A, (-1, 3))),
    ("topi.reshape: A of shape (4, 5) does not fit (-1, -1); only one size may be -1",
     lambda: topi.reshape(A, (-1, -1))),
    ("topi.concatenate along axis 1: A has shape (4, 5), but B has (3, 5); the other dimensions must "
     "agree", lambda: topi.concatenate((A, B), 1)),
    ("topi.concatenate takes at least one tensor", lambda: topi.concatenate(())),
    ("topi.stack: A has shape (4, 5), but B has (3, 5)", lambda: topi.stack((A, B))),
    ("topi.split: dimension 1 of A is 5, which 2 does not surely divide", lambda: topi.split(A, 2, 1)),
    ("topi.split: dimension 0 of A is n, which 2 does not surely divide",
     lambda: topi.split(tensor(n), 2)),
    ("topi.strided_slice: a stride must not be 0",
     lambda: topi.strided_slice(A, (0,), (1,), (0,))),
    ("topi.repeat: repeats must be an integer, but is n", lambda: topi.repeat(A, n, 0)),
    ("topi.take: the indices B are float32, but must be integers", lambda: topi.take(A, B)),
    ("topi.take: unknown mode 'none'; known: clip, wrap, fast",
     lambda: topi.take(A, tensor(2, dtype="int32"), mode="none")),
    ("topi.gather along axis 1: A has shape (4, 5), but the indices have (3, 2); the other dimensions "
     "must agree", lambda: topi.gather(A, 1, tensor(3, 2, dtype="int32"))),
    ("topi.gather_nd: the indices have shape (3, 2), whose first dimension must be a constant up to 2, "
     "the dimensions of A", lambda: topi.gather_nd(A, tensor(3, 2, dtype="int32"))),
    ("topi.arange: the step must not be 0", lambda: topi.arange(0, 4, 0)),
    ("topi.matmul: A has shape (4, 5) and B (3, 5); dimension 1 of A is 5, but dimension 0 of B is 3",
     lambda: topi.matmul(A, B)),
    ("matmul: the leading dimensions of A are (2,) and those of B (3,), which do not stretch to one "
     "shape", lambda: topi.matmul(tensor(2, 4, 4), tensor(3, 4, 4))),
    ("topi.nn.batch_matmul: A has shape (4, 5), but must have 3 dimensions",
     lambda: topi.nn.batch_matmul(A, B)),
    ("topi.tensordot: dimension 1 of A and dimension 0 of B must agree; the shapes are (4, 5) and (3, 5)",
     lambda: topi.tensordot(A, B, 1)),
    ("topi.einsum: ij,jk does not fit tensors of the shapes (4, 5)", lambda: topi.einsum("ij,jk", A)),
    ("topi.einsum: j is dimension 1 of A of shape (4, 5) and dimension 0 of B of shape (3, 5), which "
     "must agree", lambda: topi.einsum("ij,jk->ik", A, B)),
    ("softmax: axis 3 is out of range; the tensors have 2 dimensions", lambda: topi.nn.softmax(A, 3)),
    ("argument bias of dense: dimension 0 is 4, but must be 3 (m, from dimension 0 of W)",
     lambda: topi.nn.dense(A, B, tensor(4, name="b"))),
    ("topi.nn.conv2d_nchw: X has 3 channels, but the filter F is for 2",
     lambda: topi.nn.conv2d(IMAGES, FILTERS)),
    ("topi.nn.group_conv2d_nchw: X has 3 channels, but the filter F is for 2 in each of 2 groups",
     lambda: topi.nn.conv2d(IMAGES, FILTERS, groups=2)),
    ("topi.nn.group_conv2d_nchw: 4 filters cannot be divided into 3 groups",
     lambda: topi.nn.conv2d(IMAGES, FILTERS, groups=3)),
    ("topi.nn.conv2d_nchw: A has shape (4, 5), but must have 4 dimensions",
     lambda: topi.nn.conv2d(A, FILTERS)),
    ("topi.nn.conv2d_nchw: stride is (0, 1), but must be at least 1",
     lambda: topi.nn.conv2d(IMAGES, tensor(4, 3, 3, 3), (0, 1))),
    ("topi.nn.conv2d_nchw: X of shape (2, 3, 9, 9) is 9 wide with its padding, but the filter needs 11",
     lambda: topi.nn.conv2d(IMAGES, tensor(4, 3, 11, 3))),
    ("topi.nn.conv2d_nchw: padding (1, 2, 3) does not fit 2 dimensions; write an integer, (height, "
     'width), (top, left, bottom, right), "VALID" or "SAME"',
     lambda: topi.nn.conv2d(IMAGES, tensor(4, 3, 3, 3), 1, (1, 2, 3))),
    ("topi.nn.conv2d: unknown layout 'CHWN'; known: NCHW, NHWC, HWCN; groups in the first two only",
     lambda: topi.nn.conv2d(IMAGES, FILTERS, data_layout="CHWN")),
    ("topi.nn.pool2d: unknown pool_type 'mean'; known: max, avg",
     lambda: topi.nn.pool2d(IMAGES, 2, 2, 1, 0, "mean")),
    ("topi.nn.pool2d: layout 'NCHW' does not fit A of shape (4, 5)",
     lambda: topi.nn.pool2d(A, 2, 2, 1, 0, "max")),
    ("topi.nn.pad: A has 2 dimensions, but pad_before has 1 and pad_after 1 sizes",
     lambda: topi.nn.pad(A, (1,))),
    ("topi.nn.bias_add: B has shape (3, 5), but must have 1 dimension", lambda: topi.nn.bias_add(A, B)),
    ("topi.nn.nll_loss: A has shape (4, 5) and B (3, 5); the first must have one dimension more, the "
     "classes in dimension 1", lambda: topi.nn.nll_loss(A, B)),
    ("topi.nn.softmax_cross_entropy: unknown reduction 'max'; known: mean, sum, none",
     lambda: topi.nn.softmax_cross_entropy(A, A, reduction="max")),
]


@pytest.mark.parametrize("message, action", MISTAKES, ids=[row[0][:40] for row in MISTAKES])
def test_a_mistake_is_one_sentence(message, action):
    error = expect(tvm.InvalidArgument, message, action)
    assert error.file == __file__

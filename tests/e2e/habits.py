"""What users of numpy, torch, jax and te write out of habit: one line of code each, and what happens.

`v` is a numpy array, `x` and `y` are arrays of the daemon, of v and of its transpose; `A` and `B` = 2 * A are tensors of te,
`f` is what build made of them. A row has the code and either an expression of numpy that gives the same, or the whole
sentence that is said.
"""

import numpy as np

import kiln
from kiln import te, topi

VALUES = np.array([[3.0, 1.0], [2.0, 5.0]], "float32")


class Says(str):
    """What is said, instead of a value."""


NUMPY = [
    ("x + y", "v + v.T"),
    ("x * 2 - 1", "v * 2 - 1"),
    ("1 / x", "1 / v"),
    ("x @ y", "v @ v.T"),
    ("x == y", "v == v.T"),
    ("abs(-x) ** 2", "abs(-v) ** 2"),
    ("x += 1; x", "v + 1"),
    ("x + v", "v + v"),
    ("v - x", "v - v"),
    ("x.T", "v.T"),
    ("x.reshape(-1)", "v.reshape(-1)"),
    ("x.sum(axis=0)", "v.sum(axis=0)"),
    ("x.mean(), x.std()", "(v.mean(), v.std())"),
    ("x.argmax(axis=1)", "v.argmax(axis=1)"),
    ('x.astype("int32")', 'v.astype("int32")'),
    ("x.tolist()", "v.tolist()"),
    ("x[0, 1]", "v[0, 1]"),
    ("x[:, ::-1]", "v[:, ::-1]"),
    ("x[x > 1]", "v[v > 1]"),
    ("x[[1, 0]]", "v[[1, 0]]"),
    ("x[0] = 7; x", "np.array([[7, 7], [2, 5]])"),
    ("np.exp(x)", "np.exp(v)"),
    ("np.concatenate([x, v])", "np.concatenate([v, v])"),
    ("np.where(x > 2, x, 0)", "np.where(v > 2, v, 0)"),
    ("np.add(x, y, out=x); x", "v + v.T"),
    ("np.linalg.norm(x)", "np.linalg.norm(v)"),
    ('np.einsum("ij,jk->ik", x, y)', "v @ v.T"),
    ("np.asarray(x)", "v"),
    ("np.array_equal(x, v)", "True"),
    ("len(x), x.shape, x.ndim, x.size, x.nbytes", "(2, (2, 2), 2, 4, 16)"),
    ("x.dtype == np.float32, str(x.dtype)", '(True, "float32")'),
    ("np.full(1000, 255, 'uint8').sum(), kiln.nd.full(1000, 255, 'uint8').sum()", "(255000, 255000)"),
    ("[float(row.sum()) for row in x]", "[4.0, 7.0]"),
    ("5 in x", "True"),
    ("max(x.max(axis=0))", "5"),
    ("copy.deepcopy(x)", "v"),
    ("kiln.nd.ones((2, 2)) + kiln.nd.zeros((2, 2))", "np.ones((2, 2))"),
    ("bool(x)", Says(
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")),
    ("pickle.dumps(x)", Says("an NDArray lives on the daemon and cannot be pickled; pickle its .numpy()")),
    ("kiln.nd.array(np.ma.masked_array(v, v > 2))", Says(
        "nd.array is a masked array, whose mask a kernel does not know; fill it first, as in x.filled(0)")),
    ("x.summ()", Says("an array of the daemon has no summ; did you mean sum")),
]  # fmt: skip

FUNCTIONS = [
    ("f(x)", "v * 2"),
    ("f(v)", "v * 2"),
    ("f([[1, 2], [3, 4]])", "np.array([[2, 4], [6, 8]])"),
    ("f(v.T)", "v.T * 2"),
    ("x + f(x)", "v * 3"),
    ("f(x) == x + x", "np.full((2, 2), True)"),
    ("f(f(x))", "v * 4"),
    ("f(A=x)", "v * 2"),
    ("f(x, out=y) is y, y", "(True, v * 2)"),
    ("f(x, timeout=10)", "v * 2"),
    ("pickle.loads(pickle.dumps(f))(x)", "v * 2"),
    ("asyncio.run(awaited(f.submit(x)))", "v * 2"),
    ("list(inspect.signature(f).parameters)", '["A", "B"]'),
    ("f(x.astype('float64'))", Says("argument A of double is float64, but must be float32")),
    ("f(None)", Says("argument A of double is no array, but None")),
    ("f(A)", Says("argument A of double is no array, but the description of tensor A; pass an array")),
    ("f(x, y, x)", Says("double takes 2 arguments (A, B), but got 3")),
    ("f(C=x)", Says("double has no argument or size C; its arguments are A, B")),
]  # fmt: skip

TORCH_AND_JAX = [
    ("x.item() if x.size == 1 else x.flatten().max().item()", "5.0"),
    ("np.from_dlpack(x)", "v"),
    ("kiln.nd.from_dlpack(v)", "v"),
    ("x.device", "kiln.cpu(0)"),
    ("x.squeeze(), x.clip(2, 3)", "(v, v.clip(2, 3))"),
    ("x.cpu()", Says("an array of the daemon has no cpu; write x.numpy(), or x.copyto(kiln.cpu(0))")),
    ('x.to("cuda")', Says('an array of the daemon has no to; write x.copyto(kiln.cuda(0)), or x.astype("float16")')),
    ("x.view(-1)", Says("an array of the daemon has no view; write x.reshape(shape), or x.numpy().view(dtype)")),
    ("x.permute(1, 0)", Says("an array of the daemon has no permute; write x.transpose(axes)")),
    ("x.unsqueeze(1)", Says("an array of the daemon has no unsqueeze; write x[:, None]")),
    ("x.detach()", Says("an array of the daemon has no detach; write nothing: arrays carry no gradients")),
    ("x.backward()", Says(
        "an array of the daemon has no backward; write te.gradient(y, [x]) before the kernel is built, or kiln.Program's "
        "gradients")),
    ("x.at[0].set(1)", Says("an array of the daemon has no at; write x[i] = v, which changes the array")),
    ("x.block_until_ready()", Says(
        "an array of the daemon has no block_until_ready; write nothing: a call has ended when it returns")),
]  # fmt: skip

TE = [
    ("A.shape, A.dtype, B.op.name", '((2, 2), "float32", "B")'),
    ("(A + 1).shape, topi.matmul(A, B).shape", "((2, 2), (2, 2))"),
    ("A @ B", Says("there is no @ of tensors; write topi.matmul(A, B)")),
    ("te.compute((4 / 2, 2), lambda i, j: A[i, j]).shape", "(2, 2)"),
    ("tir.call_pure_extern('float32', '__expf', 1.0).dtype", '"float32"'),
    ("A[0:1]", Says(
        "tensor A is indexed by a slice; one element is read at a time: use the axes of te.compute as indices")),
    ("if A[0, 0] > 1: pass", Says(
        "A[0, 0] > 1.0 is known only when the kernel runs, so Python cannot decide by it: write te.if_then_else(condition, a, "
        "b) for if, te.all, te.any and te.logical_not for and, or and not, te.min and te.max for min and max")),
    ("math.exp(A[0, 0])", Says(
        'A[0, 0] is known only when the kernel runs, so functions of Python numbers cannot take it: write .astype("float32") '
        "for float(), te.exp for math.exp")),
    ("np.exp(A[0, 0])", Says("numpy.exp takes numbers, but A[0, 0] is known only when the kernel runs; write te.exp")),
    ("s = te.create_schedule(B.op); s[B].fuse(*B.op.axis).name", '"i.j.fused"'),
    ("str(tvm.lower(te.create_schedule(B.op), [A])).splitlines()[0]", '"fn main(A: float32[2, 2], B: float32[2, 2]) {"'),
    ("tvm.nd.array(v, tvm.cpu(0)).asnumpy()", "v"),
    ("tvm.device('opencl', 0).exist", "False"),
    ("te.extern((2, 2), [A], lambda i, o: None)", Says(
        "te.extern runs code that is not part of the definition, which Kiln does not; instead of a cblas, mkl or cublas matmul "
        "write te.sum (without a schedule), of a cudnn convolution te.sum over its window, of sort or argsort topi.sort "
        "or topi.argsort, of a loop body te.compute, te.scan or te.if_then_else, and of a random generator numpy")),
]  # fmt: skip

GROUPS = [
    ("numpy", NUMPY), ("Functions", FUNCTIONS), ("torch and jax", TORCH_AND_JAX), ("te", TE),
]  # fmt: skip


async def awaited(future):
    return await future

"""Programs of kernel files, run from Python."""

import kiln
import numpy as np
import pytest

FILE = """
kernel halve(w: float32[n]) -> (h: float32[n], most: float32[]) {
  h[i] = w[i] * 0.5
  most[] = max[i < n](h[i])
}
kernel is_small(most: float32[]) -> (done: bool[]) { done[] = most[] < 1.0 }
program halving {
  parameter w
  h, most = halve(w)
  done = is_small(most)
  update w = h
  report most
  output h
  until done
}
kernel add(w: float32[n], x: float32[b, n]) -> (v: float32[n]) { v[i] = w[i] + sum[k < b](x[k, i]) }
program adding {
  data x; parameter w
  v = add(w, x)
  update w = v
}
"""


def test_programs_of_a_kernel_file(tmp_path, service):
    path = tmp_path / "programs.kiln"
    path.write_text(FILE)
    programs = kiln.load_programs(path)
    assert list(programs) == ["halving", "adding"]
    halving = programs["halving"]
    assert repr(halving) == "FileProgram(halving: takes w; reports most; gives h)"
    with pytest.raises(kiln.InvalidArgument, match="halving needs parameter w; give it with the first run"):
        halving.run()
    result = halving.run({"w": np.float32([8, 4])})
    assert result.steps == 4 and result.reports["most"].tolist() == [4, 2, 1, 0.5]
    assert result.h.tolist() == [0.5, 0.25] == halving.parameters["w"].numpy().tolist()
    assert halving.run(steps=1).h.tolist() == [0.25, 0.125]  # from where it was

    adding = programs["adding"]
    rows = np.arange(8, dtype="float32").reshape(4, 2)
    adding.run({"w": np.zeros(2, "float32"), "x": rows}, batch=2, epochs=2)
    assert adding.parameters["w"].numpy().tolist() == [24, 32]
    assert len(adding.plan({"x": rows}, batch=2).kernels) == 1
    with pytest.raises(kiln.InvalidArgument, match="y is no input of adding; its inputs are x"):
        adding.run({"y": rows}, batch=2)


GRADIENTS = """
kernel off(x: float64[b, n], w: float64[n], y: float64[b]) -> (e: float64[b]) {
  e[i] = sum[k < n](x[i, k] * tanh(w[k])) - y[i]
}
kernel square(e: float64[b]) -> (loss: float64[1]) { loss[z] = sum[i < b](e[i] * e[i]) }
kernel move(w: float64[n], g: float64[n]) -> (v: float64[n]) { v[i] = w[i] - 0.01 * g[i] }
program regression {
  data x, y
  parameter w
  e = off(x, w, y)
  loss = square(e)
  g, du = gradient(loss, w, u)
  v = move(w, g)
  update w = v
  report loss
  parameter u
  output g, du
}

kernel total(g: float64[n]) -> (s: float64[]) { s[] = sum[i < n](g[i] * float64(i + 1)) }
program curvature {
  input x, y, w
  e = off(x, w, y)
  loss = square(e)
  g = gradient(loss, w)
  s = total(g)
  h = gradient(s, w)
  output h
}

kernel decay(w: float64[n]) -> (last: float64[]) {
  s: float64[6, n]
  scan t {
    s[0, i] = w[i]
    s[t, i] = s[t - 1, i] * w[i]
  }
  last[] = sum[i < n](s[5, i])
}
program through_time {
  input w
  last = decay(w)
  g = gradient(last, w)
  output g
}
"""


def regression(x, w, y):
    e = x @ np.tanh(w) - y
    return (e * e).sum(), 2 * e @ x / np.cosh(w) ** 2


def differences(f, value, step=1e-5):
    return np.array([(f(value + side) - f(value - side)) / (2 * step) for side in np.eye(len(value)) * step])


def test_gradients_in_a_kernel_file(tmp_path, service):
    path = tmp_path / "gradients.kiln"
    path.write_text(GRADIENTS)
    programs, random = kiln.load_programs(path), np.random.RandomState(1)
    x, y, w = random.normal(size=(6, 3)), random.normal(size=6), random.normal(size=3)
    result = programs["regression"].run({"x": x, "y": y, "w": w, "u": np.ones(2)}, batch=3, epochs=2)
    losses, at = [], w
    for rows in (slice(0, 3), slice(3, 6)) * 2:
        loss, slope = regression(x[rows], at, y[rows])
        losses.append(loss)
        at = at - 0.01 * slope
    np.testing.assert_allclose(result.reports["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(result.g, slope, rtol=1e-12)
    assert result.du.tolist() == [0, 0]  # the loss does not see u
    np.testing.assert_allclose(programs["regression"].parameters["w"].numpy(), at, rtol=1e-12)
    # What the gradient reads of the step is not computed again.
    nodes = [node for kernel in programs["regression"].plan({"x": x, "y": y}, batch=3).kernels for node in kernel["nodes"]]
    assert nodes.count("e") == 1 and len(nodes) == len(set(nodes))


def test_gradients_of_gradients_and_through_time_in_a_kernel_file(service):
    programs, random = kiln.parse_programs(GRADIENTS), np.random.RandomState(2)
    x, y, w = random.normal(size=(4, 3)), random.normal(size=4), random.normal(size=3)
    found = programs["curvature"].run({"x": x, "y": y, "w": w}).h
    wanted = differences(lambda at: regression(x, at, y)[1] @ [1, 2, 3], w)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_allclose(programs["through_time"].run({"w": w}).g, 6 * w**5, rtol=1e-12)


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ("loss = square(e)", "loss = square(e)  g = gradient(w, e)", "the gradient of w is asked for, which is an input of curvature "
         "and depends on nothing; name what a node makes"),
        ("loss = square(e)", "loss = square(e)  g = gradient(e, w)", "the gradient of e is asked for, which has shape [4], but must have "
         "one element; sum it"),
        ("loss = square(e)", "loss = square(e)  g = gradient(loss, s)", "the nodes of curvature wait for each other: s needs g needs s; "
         "what one step hands to the next is a parameter"),
        ("loss = square(e)", "loss = square(e)  other = total(w)  g = gradient(loss, other)", "a gradient with respect to other is asked "
         "for, which the value that is differentiated does not depend on"),
        ("loss = square(e)", "loss = square(e)  n = count(w)  g = gradient(n, w)", "n is int64, so there is no gradient of it; only "
         "floating tensors have one"),
    ],
)  # fmt: skip
def test_gradients_of_a_file_that_are_refused(service, old, new, sentence):
    count = "kernel count(w: float64[n]) -> (c: int64[]) { c[] = sum[i < n](int64(w[i])) }"
    kernels, _, curvature = GRADIENTS.partition("program regression")
    curvature = curvature[curvature.index("kernel total") : curvature.index("kernel decay")]
    text = count + kernels + curvature.replace("  g = gradient(loss, w)\n", "").replace(old, new)
    program = kiln.parse_programs(text)["curvature"]
    with pytest.raises(kiln.InvalidArgument) as caught:
        program.run({"x": np.ones((4, 3)), "y": np.ones(4), "w": np.ones(3)})
    assert caught.value.message == sentence


def test_a_node_may_read_a_value_twice(service):
    text = "kernel twice(a: float32[n], b: float32[n]) -> (c: float32[n]) { c[i] = a[i] * 3 - b[i] }"
    program = kiln.parse_programs(text + "program p { input x  y = twice(x, x)  z = twice(y, y)  output z }")["p"]
    assert program.run({"x": np.float32([1, 2])}).z.tolist() == [4, 8]


def test_a_mistake_in_the_program_of_a_file(tmp_path, service):
    path = tmp_path / "wrong.kiln"
    path.write_text(FILE.replace("h, most = halve(w)", "h, most = halv(w)"))
    with pytest.raises(kiln.InvalidArgument, match="halv"):
        kiln.load_programs(path)

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


def test_a_mistake_in_the_program_of_a_file(tmp_path, service):
    path = tmp_path / "wrong.kiln"
    path.write_text(FILE.replace("h, most = halve(w)", "h, most = halv(w)"))
    with pytest.raises(kiln.InvalidArgument, match="halv"):
        kiln.load_programs(path)

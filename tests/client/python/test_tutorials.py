"""Programs of several ages run as they are, with and without `inputs=`."""

import pathlib
import runpy

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"

BOUND = """\
fn main(X: float32[m, n], scan: float32[m, n]) {
  for blockIdx.x in 0..floordiv(n + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n) {
        scan[0, blockIdx.x*256 + threadIdx.x] = X[0, blockIdx.x*256 + threadIdx.x]
      }
      for scan.idx in 0..m - 1 {
        if likely(blockIdx.x*256 + threadIdx.x < n) {
          scan[scan.idx + 1, blockIdx.x*256 + threadIdx.x] = scan[scan.idx, blockIdx.x*256 + threadIdx.x] \
+ X[scan.idx + 1, blockIdx.x*256 + threadIdx.x]
        }
      }
    }
  }
}
"""


@pytest.mark.parametrize("inputs", ["with_inputs", "without_inputs"])
@pytest.mark.parametrize("program", ["scan_te.py", "scan_2017.py"])
def test_a_tutorials_program(daemon, program, inputs):
    kwargs = (lambda x: {"inputs": [x]}) if inputs == "with_inputs" else (lambda x: {})
    result = runpy.run_path(str(PROGRAMS / program), {"KWARGS": kwargs})
    assert result["TEXT_BOUND"].strip() == BOUND.strip()
    assert "allocate s1: float32[1, 32] scope(global)" in result["TEXT_TWO_STAGES"]
    assert "scan.v1[scan.idx + 1, " in result["TEXT_TWO_STATES"]

"""What NVIDIA's compiler of tiles makes of rows, columns and transposes takes no less time than Kiln's CUDA C, read from both cubins."""

import pytest
from tile_rows import ROWS, in_cuda_c, on_tiles

# Of an H100's multiprocessor: instructions of threads that it starts in a cycle, and bytes that it gets of memory (3350 GB/s).
_LANES = 128
_BYTES = 3350 / 132 / 1.83


@pytest.mark.parametrize("name", ROWS)
def test_tiles_take_no_less_time(daemon, folder, name):
    cuda_c, tiles = in_cuda_c(name, "sm_90", daemon), on_tiles(name, "sm_90", folder)
    memory = ROWS[name].bytes / _BYTES
    cycles = [max(way.each / _LANES, memory) for way in (cuda_c, tiles)]
    assert cycles[0] <= cycles[1], (cuda_c.each, tiles.each)
    # Either moves each element once and at once, and nothing that a thread has to wait for its neighbours with is more in CUDA C.
    assert cuda_c.code.widths("LDG") == {16}, cuda_c.code.kinds
    assert cuda_c.code.kinds["BAR"] <= tiles.code.kinds["BAR"], (cuda_c.code.kinds, tiles.code.kinds)
    # With half of the registers: as many loads are under way in more warps.
    assert 2 * cuda_c.registers < tiles.registers, (cuda_c.registers, tiles.registers)

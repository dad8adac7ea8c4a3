#pragma once

#include <string_view>

#include "compiler/codegen/cubin.h"
#include "compiler/ir/gpu_arch.h"

namespace kiln::codegen {

/// How many blocks of a kernel run on a multiprocessor at once, and what there is not more of.
struct Occupancy {
  int64_t blocks = 0;
  int64_t percent = 0;     // of the threads that a multiprocessor can have
  std::string_view bound;  // "threads", "blocks", "registers" or "shared memory"
};

/// Of blocks with so many threads, and shared memory beside what the cubin says.
Occupancy occupancy_of(const CubinKernel& kernel, int64_t threads, int64_t dynamic_bytes,
                       const ir::GpuArch& arch);

}  // namespace kiln::codegen

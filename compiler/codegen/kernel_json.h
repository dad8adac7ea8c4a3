#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "compiler/codegen/cubin.h"

namespace kiln::codegen {

/// What the machine code of a kernel for an architecture says of itself, as reports have it: name,
/// registers, spill_bytes, shared_bytes, instructions, and of its main loop
///
///   {"is_loop": true, "instructions": 771, "arithmetic": 512, "kind": "FFMA", "share": 0.66,
///    "barriers": 1, "spills": 0, "accesses": {"LDG": {"16": 4}, ..}}, how many of each width
nlohmann::json kernel_json(const CubinKernel& kernel, std::string_view arch);

/// What the threads of a block leave of a multiprocessor to others: threads, dynamic_shared_bytes
/// where there are any, occupancy_percent and occupancy_bound. kernel_json() has them where the
/// code says how many threads a block has.
void add_occupancy(nlohmann::json& json, const CubinKernel& kernel, int64_t threads,
                   int64_t dynamic_bytes, std::string_view arch);

}  // namespace kiln::codegen

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/tile/block_shape.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/interpret.h"
#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"
#include "tests/tile/block_axes.h"

namespace kiln::testing {

constexpr std::string_view kArchitectures[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

/// tileiras (13.5) falls at some products in tf32 that Kiln leaves to CUDA C: those for sm_80 and
/// sm_120, and those with rows that do not begin at 16 bytes.
inline bool is_left_to_cuda(std::string_view arch, const tile::Program& program) {
  return arch == "sm_80" || arch == "sm_120" || !tile::unaligned_rows(program).empty();
}

inline bool has_type(std::string_view arch, DType type) {
  return arch != "sm_80" || !is_float(type) || size_of(type) > 1;
}

/// That what a program on tiles computes of these are the bits that the definition says.
inline void expect_definition(const tile::Program& program, const language::Kernel& kernel,
                              const std::vector<int64_t>& sizes,
                              const std::vector<HostTensor>& inputs) {
  EXPECT_EQ(tile::parse(tile::print(program)), program);
  expect_disjoint_blocks(program);
  const std::vector<HostTensor> actual = tile::interpret(program, sizes, inputs);
  const std::vector<HostTensor> expected =
      language::evaluate(kernel.definition, kernel.names, sizes, inputs);
  ASSERT_EQ(actual.size(), 1u);
  EXPECT_EQ(actual[0].shape, expected[0].shape);
  EXPECT_TRUE(actual[0].bytes == expected[0].bytes);
}

/// That tileiras takes the program of a definition for each of the architectures.
inline void expect_assembled(const language::Kernel& kernel) {
  const tile::BlockShape shape = tile::block_shape(kernel);
  const tile::Program program = tile::contraction(kernel, shape);
  SCOPED_TRACE(tile::print(program));
  const DType factor = kernel.definition.type_of(kernel.definition.parameters[0]);
  for (const std::string_view arch : kArchitectures) {
    if (!has_type(arch, factor)) continue;
    if (factor == DType::Float32 && is_left_to_cuda(arch, program)) continue;
    const std::string bytecode =
        tile::bytecode(tile::alone(program), {.arch = std::string(arch), .warps = shape.warps});
    const std::string cubin = assembled(bytecode, std::string(arch));
    EXPECT_EQ(codegen::kernels_of_cubin(cubin).at(0).name, "kiln_tile_0");
  }
}

inline void expect_no_form(const language::Kernel& kernel, std::string_view reason) {
  const Error error =
      expect_error([&] { tile::block_shape(kernel); }, ErrorKind::Unsupported, reason);
  EXPECT_EQ(error.reason(), "TILE_FORM");
}

}  // namespace kiln::testing

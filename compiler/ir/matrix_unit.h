#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/core/dtype.h"

namespace kiln::ir {

/// Rows and columns of what one instruction of a warp multiplies (mma.sync), for any types.
inline constexpr int64_t kMatrixRows = 16;
inline constexpr int64_t kMatrixColumns = 8;
/// Bytes of a row that ldmatrix reads at once, and how many rows a matrix of it has.
inline constexpr int64_t kMatrixRowBytes = 16;
inline constexpr int64_t kMatrixRowsAtOnce = 8;

/// What tensor cores do with factors of some types.
struct MatrixUnit {
  DType sums;
  int64_t steps;         // of the sum, for one instruction
  int first_capability;  // 80 of sm_80
  bool is_exact;         // sums are the same in any order
  // Of a sum, that the instruction may add up by itself before float32 does; 0 where any number.
  int64_t chained_steps = 0;
};

/// Nothing where no instruction multiplies such factors.
std::optional<MatrixUnit> matrix_unit(DType a, DType b);

/// Of float32 factors of which tf32() is taken: the same instructions read no more of them.
MatrixUnit tensor_float_unit();

/// Whether an architecture ("sm_90", "sm_90a"; empty is the default) has it.
bool has_matrix_unit(std::string_view arch, const MatrixUnit& unit);

/// Whether that of 8-bit floats adds them up in fewer bits than float32 has; between sm_89 and
/// sm_120 it multiplies them as float16.
bool has_short_sums(std::string_view arch);

}  // namespace kiln::ir

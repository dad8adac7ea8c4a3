// From PTX ISA 9.0, "Matrix multiply-accumulate operation using mma instruction":
//   m16n8k16 of float16 or bfloat16 in float32, m16n8k32 of int8 and uint8 in int32 (sm_80),
//   m16n8k32 of 8-bit floats in float32 (sm_89). 8-bit factors may be of two types.
//   m16n8k8 of tf32 in float32 (sm_80).
//
// Of 8-bit floats tensor cores align all that an instruction adds with the largest of it, and keep
// the 13 bits of a mantissa that SageAttention2 (arXiv:2411.10958) finds on sm_89: each of the 33
// numbers that one of 32 steps adds loses at most 2^-13 of the largest. Of a sum that stays there
// the loss grows with its length; of chains of c instructions, added up in float32, it is at most
// 33 * c * 2^-13 of the largest number that a chain adds, however many chains there are. 128 steps,
// four instructions, are those of DeepGEMM (DeepSeek-V3, arXiv:2412.19437, section 3.3.2) and of
// CUTLASS for sm_90.
#include "compiler/ir/matrix_unit.h"

#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/short_integers.h"

namespace kiln::ir {
namespace {

bool is_byte_float(DType type) { return is_float(type) && bits_of(type) == 8; }

}  // namespace

std::optional<MatrixUnit> matrix_unit(DType a, DType b) {
  if (is_short_float(a) && a == b) {
    return MatrixUnit{
        .sums = DType::Float32, .steps = 16, .first_capability = 80, .is_exact = false};
  }
  if (is_byte(a) && is_byte(b)) {
    return MatrixUnit{.sums = DType::Int32, .steps = 32, .first_capability = 80, .is_exact = true};
  }
  if (is_byte_float(a) && is_byte_float(b)) {
    return MatrixUnit{.sums = DType::Float32,
                      .steps = 32,
                      .first_capability = 89,
                      .is_exact = false,
                      .chained_steps = 128};
  }
  return std::nullopt;
}

MatrixUnit tensor_float_unit() {
  return {.sums = DType::Float32, .steps = 8, .first_capability = 80, .is_exact = false};
}

bool has_short_sums(std::string_view arch) {
  const int capability = capability_of(arch);
  return capability == 89 || capability >= 120;
}

bool has_matrix_unit(std::string_view arch, const MatrixUnit& unit) {
  return capability_of(arch) >= unit.first_capability;
}

}  // namespace kiln::ir

// From PTX ISA 9.0, "Matrix multiply-accumulate operation using mma instruction":
//   m16n8k16 of float16 or bfloat16 in float32, m16n8k32 of int8 and uint8 in int32 (sm_80),
//   m16n8k32 of 8-bit floats in float32 (sm_89). 8-bit factors may be of two types.
//   m16n8k8 of tf32 in float32 (sm_80).
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
    return MatrixUnit{
        .sums = DType::Float32, .steps = 32, .first_capability = 89, .is_exact = false};
  }
  return std::nullopt;
}

MatrixUnit tensor_float_unit() {
  return {.sums = DType::Float32, .steps = 8, .first_capability = 80, .is_exact = false};
}

bool has_matrix_unit(std::string_view arch, const MatrixUnit& unit) {
  return capability_of(arch) >= unit.first_capability;
}

}  // namespace kiln::ir

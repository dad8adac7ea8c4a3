/// Rows divided by one number each, which is done by its reciprocal, against division one by one.

#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "tests/support/run_on_cpu.h"

namespace kiln {
namespace {

using namespace ir;
using testing::HostTensor;

constexpr int kLanes = 32;
constexpr int64_t kRows = 256;
constexpr int64_t kColumns = 8192;

Expr quotient(const Expr& x, const Expr& y) { return Binary::make(language::Operator::Div, x, y); }

/// p2[i, j] = p0[i, j] / p1[i] in vectors, p3[i, j] one by one.
Kernel rows_by_one() {
  Kernel kernel;
  kernel.name = "divide";
  const auto parameter = [&](int64_t size, bool is_output) {
    const std::string name = "p" + std::to_string(kernel.parameters.size());
    kernel.parameters.push_back(Buffer::make(name, DType::Float32, {index(size)}, Scope::Global));
    kernel.is_output.push_back(is_output);
    return kernel.parameters.back();
  };
  const BufferRef x = parameter(kRows * kColumns, false);
  const BufferRef y = parameter(kRows, false);
  const BufferRef vectors = parameter(kRows * kColumns, true);
  const BufferRef elements = parameter(kRows * kColumns, true);
  const VarRef i = Var::make("i");
  const VarRef j = Var::make("j");
  const VarRef k = Var::make("k");
  const Expr lanes = Ramp::make(i * kColumns + j * kLanes, index(1), kLanes);
  const Expr one = Load::make(y, {i});
  const Expr in_vectors = quotient(Load::make(x, {lanes}), Broadcast::make(one, kLanes));
  const Expr alone = quotient(Load::make(x, {i * kColumns + k}), one);
  kernel.body =
      For::make(i, index(kRows), LoopKind::Serial,
                Block::make({For::make(j, index(kColumns / kLanes), LoopKind::Serial,
                                       Store::make(vectors, {lanes}, in_vectors)),
                             For::make(k, index(kColumns), LoopKind::Serial,
                                       Store::make(elements, {i * kColumns + k}, alone))}));
  return kernel;
}

HostTensor tensor_of(const std::vector<float>& values) {
  HostTensor tensor = testing::zeros(DType::Float32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

/// Any bits at all.
class Bits {
 public:
  uint32_t next() {  // xorshift64
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_);
  }
  float in(int low, int high) {
    const float fraction = 1 + static_cast<float>(next() >> 9) * 0x1p-23F;
    const int exponent = low + static_cast<int>(next() % static_cast<uint32_t>(high - low));
    return std::ldexp(next() % 2 == 0 ? fraction : -fraction, exponent);
  }

 private:
  uint64_t state_ = 88172645463325252u;
};

/// One value for all lanes of a vector, so that it alone says which way the vector takes.
TEST(Division, ByOneNumberGivesTheBitsOfDivision) {
  Bits bits;
  const std::vector<float> special = {0.0F,       -0.0F, INFINITY, -INFINITY,  NAN,
                                      1e-45F,     3e38F, 1e-38F,   0x1p-100F,  0x1p100F,
                                      16777216.F, 3.0F,  0x1p-24F, 1.9999999F, 0x1.fffffep-101F};
  std::vector<float> y = special;
  while (y.size() < static_cast<size_t>(kRows)) {
    const bool any = y.size() % 4 == 0;
    y.push_back(any ? std::bit_cast<float>(bits.next()) : bits.in(-26, 26));
  }
  std::vector<float> x;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto vector = static_cast<size_t>(i % kColumns / kLanes);
    if (vector < special.size()) {
      x.push_back(special[vector]);
    } else {
      x.push_back(vector % 2 == 0 ? bits.in(-104, 104) : bits.in(-2, 2));
    }
  }
  std::vector<HostTensor> tensors = {tensor_of(x), tensor_of(y), {}, {}};
  testing::run_artifact(testing::compile_lowered(rows_by_one()), tensors);
  EXPECT_EQ(tensors[2].bytes, tensors[3].bytes);
}

}  // namespace
}  // namespace kiln

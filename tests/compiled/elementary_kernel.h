#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/language/tables/operator.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/tensors.h"

// What the tests of functions of floats have in common: a kernel that computes one in vectors and
// one by one, and how far a result is off.
namespace kiln::testing {

inline constexpr int kLanes = 32;
inline constexpr int64_t kBatch = int64_t{1} << 20;

/// Of one operand, all that are not exact.
inline std::vector<language::Operator> functions() {
  std::vector<language::Operator> result;
  for (const language::OperatorRow& row : language::operator_table()) {
    const bool is_function = row.arity == 1 && row.type_rule == language::TypeRule::SameFloat;
    if (is_function && row.accuracy != "exact") result.push_back(row.op);
  }
  return result;
}

/// How many steps of its type a result may be off, as the table says.
inline double allowed(language::Operator op) {
  return std::atof(std::string(language::row_of(op).accuracy).c_str());
}

/// How far a float is from the exact value, in steps of floats at that value.
template <typename Float, typename Exact>
double steps_off(Float actual, Exact exact) {
  using Limits = std::numeric_limits<Float>;
  const double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(actual) || std::isnan(exact))
    return std::isnan(actual) == std::isnan(exact) ? 0 : infinity;
  if (std::signbit(actual) != std::signbit(exact) && (actual == 0 || exact == 0)) return infinity;
  const auto rounded = static_cast<Float>(exact);
  if (actual == rounded) return 0.5;
  if (std::isinf(actual) || std::isinf(rounded)) {
    const Float finite = std::isinf(actual) ? rounded : actual;
    return std::nextafter(std::fabs(finite), Limits::infinity()) == Limits::infinity() ? 1
                                                                                       : infinity;
  }
  const int exponent = std::max(std::ilogb(exact), Limits::min_exponent - 1);
  const Exact step = std::ldexp(Exact{1}, exponent - (Limits::digits - 1));
  return static_cast<double>(std::fabs(actual - exact) / step);
}

/// p1[i] = op(p0[i]) in vectors, p2[i] one by one; `arity` inputs come first.
inline ir::Kernel over_all(language::Operator op, int arity, DType type = DType::Float32) {
  using namespace ir;
  Kernel kernel;
  kernel.name = "elementary";
  std::vector<BufferRef> inputs;
  const auto parameter = [&](bool is_output) {
    const std::string name = "p" + std::to_string(kernel.parameters.size());
    kernel.parameters.push_back(Buffer::make(name, type, {index(kBatch)}, Scope::Global));
    kernel.is_output.push_back(is_output);
    return kernel.parameters.back();
  };
  for (int i = 0; i < arity; ++i)
    inputs.push_back(parameter(false));
  const auto value = [&](const Expr& at) {
    std::vector<Expr> args;
    for (const BufferRef& input : inputs)
      args.push_back(Load::make(input, {at}));
    return Call::make(op, args);
  };
  const VarRef i = Var::make("i");
  const VarRef j = Var::make("j");
  const Expr row = Ramp::make(i * kLanes, index(1), kLanes);
  const BufferRef vectors = parameter(true);
  const BufferRef elements = parameter(true);
  kernel.body = Block::make(
      {For::make(i, index(kBatch / kLanes), LoopKind::Parallel,
                 Store::make(vectors, {row}, value(row))),
       For::make(j, index(kBatch), LoopKind::Parallel, Store::make(elements, {j}, value(j)))});
  return kernel;
}

template <typename Float>
HostTensor tensor_of(const std::vector<Float>& values) {
  const DType type = sizeof(Float) == sizeof(double) ? DType::Float64 : DType::Float32;
  HostTensor tensor = zeros(type, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

template <typename Float>
struct Worst {
  double steps = 0;
  Float at = 0;
};

/// Of the first `count` results of the kernel, what is off most; an element must give the same bits
/// in a vector as alone.
template <typename Float, typename Function>
void look_at(const std::shared_ptr<const Artifact>& artifact, const std::vector<Float>& x,
             size_t count, const Function& exact, Worst<Float>& worst) {
  std::vector<HostTensor> tensors = {tensor_of(x), {}, {}};
  run_artifact(artifact, tensors);
  EXPECT_EQ(tensors[1].bytes, tensors[2].bytes);
  const std::vector<Float> y = values_of<Float>(tensors[1]);
  for (size_t i = 0; i < count; ++i) {
    const double off = steps_off(y[i], exact(x[i]));
    if (off > worst.steps) worst = {off, x[i]};
  }
}

}  // namespace kiln::testing

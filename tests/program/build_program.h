#pragma once

#include <map>
#include <string>

#include "compiler/program/plan.h"
#include "tests/support/kernels.h"

namespace kiln::testing {

/// A program put together by names.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program.name = std::move(name); }

  program::ValueId value(const std::string& name,
                         program::ValueKind kind = program::ValueKind::Made) {
    const auto [at, is_new] = ids_.try_emplace(name, program.values.size());
    if (is_new) program.values.push_back({name, kind});
    return at->second;
  }
  program::ValueId input(const std::string& name) { return value(name, program::ValueKind::Input); }
  program::ValueId parameter(const std::string& name) {
    return value(name, program::ValueKind::Parameter);
  }
  /// A node of one output, which is called as the node is.
  program::ValueId node(const std::string& name, const std::string& kernel,
                        const std::vector<std::string>& inputs) {
    program::Node& node = program.nodes.emplace_back();
    node.name = name;
    node.kernel = static_cast<uint32_t>(program.kernels.size());
    node.line = {"model.py", static_cast<int>(program.nodes.size())};
    for (const std::string& each : inputs)
      node.inputs.push_back(value(each));
    node.outputs.push_back(value(name));
    program.kernels.push_back(kernel_of(kernel).kernel);
    return node.outputs[0];
  }
  void update(const std::string& parameter, const std::string& name) {
    program.updates.push_back({value(parameter), value(name)});
  }

  program::Program program;

 private:
  std::map<std::string, program::ValueId> ids_;
};

inline constexpr const char* kRelu =
    "kernel relu(X: float32[m, n]) -> (Y: float32[m, n]) { Y[i, j] = max(X[i, j], 0) }";
inline constexpr const char* kDense =
    "kernel dense(X: float32[m, k], W: float32[k, n]) -> (Y: float32[m, n]) "
    "{ Y[i, j] = sum[l < k](X[i, l] * W[l, j]) }";
inline constexpr const char* kAdd =
    "kernel add(A: float32[m, n], B: float32[m, n]) -> (C: float32[m, n]) "
    "{ C[i, j] = A[i, j] + B[i, j] }";
inline constexpr const char* kTotal =
    "kernel total(X: float32[m, n]) -> (Y: float32[]) { Y[] = sum[i < m, j < n](X[i, j]) }";

}  // namespace kiln::testing

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/kernel.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// What the definition evaluator says of one call, for kernels of which nothing is known.
class Oracle {
 public:
  /// Steps of the evaluator, and elements of a tensor.
  static constexpr int64_t kMaxSteps = 1'000'000;

  Oracle(const language::Kernel& kernel, std::vector<int64_t> sizes,
         std::vector<HostTensor> inputs);

  /// Whether some stage takes too long to compute, or has no memory; then nothing else is known.
  bool is_too_large() const { return is_too_large_; }
  /// Whether an element that an output needs reads outside of a tensor.
  bool stops() const { return !outputs_; }
  /// Whether any element of any stage does, needed or not; of stages inside a scan this is not
  /// known, and they count as such that do.
  bool may_stop() const { return may_stop_; }
  const std::vector<HostTensor>& outputs() const { return *outputs_; }

  /// Empty when the tensors are what the definition says but for rounding, else where they differ
  /// first. Equal to the last bit needs nothing more; else the definition is evaluated anew with
  /// roundings that go astray, which shows by how much results may differ.
  std::string difference(const std::vector<HostTensor>& actual) const;
  /// Whether rounding decides if an index is outside.
  bool rounding_decides_stop() const;

 private:
  struct Noise;

  std::optional<std::vector<HostTensor>> run(const language::Definition& definition,
                                             const language::Rounding& rounding = nullptr) const;
  bool has_memory() const;
  void look_at_stages();

  const language::Kernel& kernel_;
  const std::vector<int64_t> sizes_;
  const std::vector<HostTensor> inputs_;
  std::optional<std::vector<HostTensor>> outputs_;
  bool is_too_large_ = false;
  bool may_stop_ = false;
};

}  // namespace kiln::testing

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kiln/client.h>

namespace kiln::cli {

/// What the device can do at most, as measured on it.
struct Roof {
  double operations = 0;  // a second
  double bytes = 0;       // a second
};

/// A stage, or the whole kernel: what it has to do, and how long that takes.
struct PartCost {
  std::string name;
  double operations = 0;
  double bytes = 0;
  std::optional<double> seconds;  // nothing where it was not run

  /// The least time under this roof, by what bounds it; "operations" or "bytes".
  double least(const Roof& roof) const;
  std::string bound(const Roof& roof) const;
};

/// Sizes that nobody gave, as powers of two: the largest up to 1,024 with which the kernel has no
/// more than 256 MB of tensors and 10^10 operations.
std::map<std::string, std::int64_t> with_sizes_taken(const Definition& definition,
                                                     std::map<std::string, std::int64_t> given);

/// Sizes that follow from the shapes of arrays which are given for the inputs, in their order.
std::map<std::string, std::int64_t> sizes_of_inputs(const Definition& definition,
                                                    const std::vector<Argument>& inputs);

/// Inputs of these sizes: numbers between 1/2 and 1, whose sums and products stay ordinary; whole
/// numbers and those of 16 bits are zeros, which are indices of any tensor.
std::vector<Argument> made_up_inputs(const Definition& definition,
                                     const std::map<std::string, std::int64_t>& sizes);

/// Measures on one device.
class PartMeasure {
 public:
  PartMeasure(Connection connection, BuildOptions build, CallOptions call)
      : connection_(std::move(connection)), build_(std::move(build)), call_(std::move(call)) {}

  /// Seconds a run, the least of a few, with these inputs or ones that are made up.
  double seconds(const Definition& definition, const std::vector<Argument>& inputs) const;
  double seconds(const Kernel& kernel, const Definition& definition,
                 const std::vector<Argument>& inputs) const;
  /// The roof of kernels that compute in this type: a product of matrices and a triad are run.
  Roof roof(const std::string& dtype) const;
  /// The stages of a definition, each as a kernel of its own, scheduled by the service; then the
  /// whole. `tell` hears of each before it is measured.
  std::vector<PartCost> parts(const Definition& definition, const Kernel& compiled,
                              const std::vector<Argument>& inputs,
                              const std::function<void(const std::string&)>& tell) const;

 private:
  Connection connection_;
  BuildOptions build_;
  CallOptions call_;
};

/// The same without times.
std::vector<PartCost> parts_unmeasured(const Definition& definition,
                                       const std::map<std::string, std::int64_t>& sizes);

}  // namespace kiln::cli

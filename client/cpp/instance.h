#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "client/cpp/binding.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The stages of one call of a definition, made as they are asked for.
class Instance {
 public:
  explicit Instance(const Binding& binding);

  /// The tensor that an id of the definition has become.
  Tensor tensor(const v1::TensorId& id);
  /// An expression over sizes alone.
  Expr size(std::uint32_t expression);

 private:
  struct Stage;  // whose body is being made

  using Inputs = std::set<std::uint32_t>;

  void find_batches();
  Inputs reached_by(const v1::Scan& scan, const std::map<std::uint32_t, Inputs>& below) const;
  void make(std::uint32_t stage);
  void make_compute(std::uint32_t stage, const v1::Compute& compute);
  void make_scan(std::uint32_t stage, const v1::Scan& scan);
  void finish(std::uint32_t stage, std::vector<Tensor> tensors);
  std::vector<std::uint32_t> needed(std::uint32_t stage) const;
  std::vector<std::uint32_t> read_stages(const v1::Compute& compute) const;

  Expr expression(std::uint32_t id, Stage& stage);
  Expr build(const v1::Expression& row, Stage& stage);
  Expr read(const v1::Read& read, Stage& stage);
  Expr reduction(const v1::Reduction& reduction, Stage& stage);
  Expr axis(std::uint32_t id, Stage& stage);

  DType type(int declared) const;
  const std::string& stage_name(std::uint32_t stage) const;
  const std::string& axis_name(std::uint32_t axis) const;
  std::vector<std::string> axis_names(const v1::Compute& compute, std::size_t leading) const;

  const Binding& binding_;
  const v1::Definition& definition_;
  std::map<std::uint32_t, std::vector<Given>> made_;  // by stage: what its outputs are
  std::map<std::uint32_t, Shape> batches_;            // by stage: the dimensions in front
};

}  // namespace detail
}  // namespace client
}  // namespace kiln

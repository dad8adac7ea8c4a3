#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "client/cpp/binding.h"
#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The stages of one call of a definition, made as they are asked for.
class Instance {
 public:
  explicit Instance(const Binding& binding);

  /// The tensor that an id of the definition has become.
  Tensor tensor(const v1::TensorId& id);
  /// All outputs of a stage are those of a node of the caller's.
  void put(std::uint32_t stage, const std::shared_ptr<const StageNode>& node);
  /// An expression over sizes alone.
  Expr size(std::uint32_t expression);

 private:
  /// Whose body is being made.
  struct Stage {
    std::map<std::uint32_t, Expr> axes;  // by number: its own, and those it reduces over
    std::map<std::uint32_t, std::shared_ptr<const AxisNode>> reduced;
    Shape batch;
    std::vector<Expr> leading;
    std::map<std::uint32_t, Expr> known;  // expressions that are made
  };

  using Inputs = std::set<std::uint32_t>;

  void find_batches();
  Inputs reached_by(const v1::Scan& scan, const std::map<std::uint32_t, Inputs>& below) const;
  void make(std::uint32_t stage);
  void make_compute(std::uint32_t stage, const v1::Compute& compute);
  void make_scan(std::uint32_t stage, const v1::Scan& scan);
  void make_scatter(std::uint32_t stage, const v1::Scatter& scatter);
  Tensor stored(const v1::TensorId& id, const Shape& batch);
  void finish(std::uint32_t stage, std::vector<Tensor> tensors);
  std::vector<std::uint32_t> needed(std::uint32_t stage) const;
  std::vector<std::uint32_t> read_stages(std::vector<std::uint32_t> roots) const;
  std::vector<std::size_t> order(std::uint32_t stage, std::size_t rank) const;
  Shape shape_of(std::uint32_t stage, const google::protobuf::RepeatedField<std::uint32_t>& axes);

  Expr expression(std::uint32_t id, Stage& stage);
  Expr build(const v1::Expression& row, Stage& stage);
  Expr read(const v1::Read& read, Stage& stage);
  Expr element(const v1::TensorId& id, const Shape& batch, const std::vector<Expr>& leading,
               const std::vector<Expr>& own);
  Expr reduction(const v1::Reduction& reduction, Stage& stage);
  std::shared_ptr<const ReducerNode> reducer(std::uint32_t id);
  Expr axis(std::uint32_t id, Stage& stage);

  DType type(int declared) const;
  const std::string& stage_name(std::uint32_t stage) const;
  const std::string& axis_name(std::uint32_t axis) const;
  std::vector<std::string> axis_names(const google::protobuf::RepeatedField<std::uint32_t>& axes,
                                      std::size_t leading) const;

  const Binding& binding_;
  const v1::Definition& definition_;
  std::map<std::uint32_t, std::vector<Given>> made_;  // by stage: what its outputs are
  std::map<std::uint32_t, std::shared_ptr<const ReducerNode>> reducers_;
  std::map<std::uint32_t, Shape> batches_;  // by stage: the dimensions in front
};

}  // namespace detail
}  // namespace client
}  // namespace kiln

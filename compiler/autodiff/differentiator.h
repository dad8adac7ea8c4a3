#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler/autodiff/accumulate.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/autodiff/sweep.h"

namespace kiln::autodiff {

/// One differentiation under way: stages are visited from the last to the first; each gives its
/// adjoint on to what it reads.
class Differentiator {
 public:
  Differentiator(const Kernel& kernel, const GradientRequest& request);

  Gradient run();

 private:
  void check_request();
  void find_cells();
  void find_active();
  void add_heads();
  void visit(StageId stage);
  void visit(const Node& node);
  void visit(StageId stage, const language::Scatter& scatter);
  void visit(StageId stage, const language::Scan& scan);
  Node node_of(TensorId tensor, const Compute& compute);
  void give(std::vector<Contribution> contributions);

  bool has_adjoint(TensorId tensor) const {
    return given_.contains(tensor) || adjoints_.contains(tensor);
  }
  const Adjoint& adjoint_of(TensorId tensor);
  ExprId read_adjoint(TensorId tensor, const std::vector<ExprId>& indices);
  AdjointSpec spec_of(TensorId tensor);
  std::map<size_t, std::string> names_of_readers(TensorId tensor) const;
  std::optional<TensorId> as_copy(TensorId tensor) const;
  TensorId gradient_of(TensorId tensor, std::set<TensorId>& taken);
  std::string name_of(TensorId tensor) const;

  Builder b_;
  const GradientRequest& request_;
  const StageId original_stages_;
  Seeds seeds_;
  Activity active_;
  std::vector<int> scan_of_;  // by stage: the scan in whose cell it is, or -1
  std::map<TensorId, std::vector<Contribution>> given_;
  std::map<TensorId, Adjoint> adjoints_;
  std::map<TensorId, Adjoint> from_readers_;  // of results of scans, without what steps add
  std::vector<TensorId> heads_;
};

/// The kernel without the stages that no parameter needs, of those behind the first `kept`.
Gradient without_dead(const Gradient& gradient, const Kernel& original);

}  // namespace kiln::autodiff

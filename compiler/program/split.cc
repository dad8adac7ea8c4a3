// The inverse of join: stages of one kernel as kernels that hand values to each other, so that a
// plan can fuse them as it sees fit, and what others have computed already is not computed again.
//
//   kernel(x) { h = exp(x)  y = h * h }, h known   ->   kernel(h) { y = h * h }
#include "compiler/program/split.h"

#include <algorithm>
#include <set>

#include "compiler/language/parts.h"
#include "compiler/language/wire/canonical.h"

namespace kiln::program {
namespace {

using namespace language;

class Splitter {
 public:
  Splitter(const Kernel& whole, const std::function<bool(TensorId)>& is_known)
      : whole_(whole), definition_(whole.definition), is_known_(is_known) {}

  std::vector<Piece> run(const std::vector<TensorId>& wanted) {
    for (const TensorId tensor : wanted)
      need(tensor);
    const bool has_scan = std::ranges::any_of(
        needed_, [&](StageId id) { return std::holds_alternative<Scan>(definition_.stages[id]); });
    if (has_scan) return {piece(needed_, wanted)};
    std::vector<Piece> pieces;
    for (const StageId id : needed_) {
      std::vector<TensorId> made;
      for (uint32_t output = 0; output < output_count(definition_.stages[id]); ++output)
        made.push_back({id, output});
      pieces.push_back(piece({id}, made));
    }
    return pieces;
  }

 private:
  bool is_given(TensorId tensor) const {
    return std::ranges::find(definition_.parameters, tensor) != definition_.parameters.end() &&
           std::holds_alternative<Placeholder>(definition_.stages[tensor.stage]);
  }

  /// The stage of a tensor and all that it needs. By hand, not by recursion: chains can be long.
  void need(TensorId tensor) {
    std::vector<TensorId> open = {tensor};
    while (!open.empty()) {
      const TensorId at = open.back();
      open.pop_back();
      if (is_known_(at) || is_given(at) || !needed_.insert(at.stage).second) continue;
      const std::vector<TensorId> read = reads_of(definition_, at.stage);
      open.insert(open.end(), read.begin(), read.end());
    }
  }

  /// The stages, with a placeholder for each tensor of another one that they read.
  Piece piece(const std::set<StageId>& stages, const std::vector<TensorId>& made) const {
    Part part{.name = whole_.names.tensor_name(definition_, made[0]),
              .stages = {stages.begin(), stages.end()},
              .inputs = {},
              .outputs = made};
    std::set<TensorId> inputs;
    for (const StageId id : stages) {
      for (const TensorId tensor : reads_of(definition_, id)) {
        if (!stages.contains(tensor.stage) && inputs.insert(tensor).second)
          part.inputs.push_back(tensor);
      }
    }
    return {canonicalize(kernel_of(whole_, part), {}).kernel, part.inputs, made};
  }

  const Kernel& whole_;
  const Definition& definition_;
  const std::function<bool(TensorId)>& is_known_;
  std::set<StageId> needed_;
};

}  // namespace

std::vector<Piece> split(const Kernel& kernel, const std::vector<TensorId>& wanted,
                         const std::function<bool(TensorId)>& is_known) {
  return Splitter(kernel, is_known).run(wanted);
}

}  // namespace kiln::program

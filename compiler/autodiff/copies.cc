// Adjoints of tensors that were only padded, cut or turned around are copies of others. They are
// computed in their last form, so that no copy is made and nothing is computed that is cut off.
#include "compiler/autodiff/copies.h"

#include <map>
#include <set>

namespace kiln::autodiff {
namespace {

using namespace language;

/// How many live stages read each tensor.
std::map<TensorId, int> count_readers(const Builder& b, const std::vector<TensorId>& parameters) {
  std::map<TensorId, int> readers;
  std::set<StageId> seen;
  std::vector<StageId> open;
  for (const TensorId parameter : parameters)
    open.push_back(parameter.stage);
  while (!open.empty()) {
    const StageId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Stage& stage = b.definition().stages[id];
    std::set<TensorId> read;
    for (const ExprId body : bodies_of(stage)) {
      for (const TensorId tensor : b.reads(body))
        read.insert(tensor);
    }
    if (const auto* scatter = std::get_if<Scatter>(&stage)) read.insert(scatter->base);
    if (const auto* scan = std::get_if<Scan>(&stage)) {
      for (const auto* list : {&scan->init, &scan->update, &scan->state})
        read.insert(list->begin(), list->end());
    }
    for (const TensorId tensor : read) {
      ++readers[tensor];
      open.push_back(tensor.stage);
    }
  }
  return readers;
}

}  // namespace

void inline_copied(Builder& builder, StageId first, const std::vector<TensorId>& parameters) {
  const std::map<TensorId, int> readers = count_readers(builder, parameters);
  const std::set<TensorId> kept(parameters.begin(), parameters.end());
  const auto stages = static_cast<StageId>(builder.definition().stages.size());
  for (StageId id = first; id < stages; ++id) {
    const auto* compute = std::get_if<Compute>(&builder.definition().stages[id]);
    const bool is_live = readers.contains({id, 0}) || kept.contains({id, 0});
    if (compute == nullptr || compute->bodies.size() != 1 || !is_live) continue;
    const auto* found = builder.as<Read>(compute->bodies[0]);
    if (found == nullptr || found->tensor.stage < first || kept.contains(found->tensor)) continue;
    if (builder.is_kept_apart(found->tensor.stage)) continue;
    const Read read = *found;
    const auto* source = std::get_if<Compute>(&builder.definition().stages[read.tensor.stage]);
    const auto count = readers.find(read.tensor);
    if (source == nullptr || source->bodies.size() != 1 || count == readers.end() ||
        count->second != 1) {
      continue;
    }
    Substitution own;
    for (size_t d = 0; d < source->axes.size(); ++d)
      own.axes[source->axes[d]] = read.indices[d];
    const ExprId body = builder.substitute(source->bodies[0], own);
    std::get<Compute>(builder.kernel().definition.stages[id]).bodies[0] = body;
  }
}

}  // namespace kiln::autodiff

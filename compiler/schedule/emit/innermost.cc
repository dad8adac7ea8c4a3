// One iteration of all loops of a stage: its stores, the steps of its reductions, its scatters,
// with the checks of what they read before them.
//
//   C[i] = sum[k](A[i, k])  ->  C[i] = C[i] + A[i, k]
#include "compiler/schedule/emit/innermost.h"

#include <utility>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/storage_layout.h"
#include "compiler/schedule/emit/combine.h"
#include "compiler/schedule/emit/lower_reads.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::schedule {

ir::Expr Innermost::lowered(const Walk& walk, const ir::Expr& bound,
                            std::vector<ir::Stmt>& before) {
  if (!has_read(bound)) return bound;
  LoweredBody body = lower_reads(graph_, plan_, walk.stage, bound, {}, facts_, checks_);
  before.insert(before.end(), body.checks.begin(), body.checks.end());
  return body.value;
}

/// The axes of a stage in terms of its loops. Checks go to `before`.
ir::Substitution Innermost::values_of(const Walk& walk, std::vector<ir::Stmt>& before) {
  ir::Substitution values;
  for (const auto& [root, value] : walk.nest.values) {
    const bool is_known = walk.part != Part::Init || !has_read(value);
    if (is_known) values[root] = lowered(walk, ir::substitute(value, walk.renamed), before);
  }
  return values;
}

ir::Stmt Innermost::iteration(const Walk& walk) {
  const Stage& stage = graph_[walk.stage];
  std::vector<ir::Stmt> stmts;
  const ir::Substitution values = values_of(walk, stmts);
  if (stage.kind == Stage::Kind::Scatter) return scatter(walk, values);
  std::vector<ir::Stmt> stores;
  for (uint32_t output = 0; output < stage.bodies.size();) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(stage.bodies[output]);
    if (reduce == nullptr) {
      stores.push_back(store(walk, output, stage.bodies[output], values, stmts));
      ++output;
    } else if (walk.part == Part::Init) {
      const ir::Expr start = reduce->init.empty()
                                 ? ir::identity_of(reduce->how, stage.types[output])
                                 : reduce->init[reduce->how.output];
      stores.push_back(store(walk, output, start, values, stmts));
      ++output;
    } else {
      stores.push_back(update(walk, output, values, stmts));
      output += static_cast<uint32_t>(reduce->how.values());
    }
  }
  stmts.insert(stmts.end(), stores.begin(), stores.end());
  return ir::Block::make(std::move(stmts));
}

ir::Stmt Innermost::scatter(const Walk& walk, const ir::Substitution& values) {
  const Stage& stage = graph_[walk.stage];
  const ir::BufferRef& buffer = plan_.storage.at({walk.stage, 0}).buffer;
  LoweredScatter lowered = lower_scatter(graph_, plan_, walk.stage, values, facts_, checks_);
  ir::Expr value = lowered.update;
  if (traits_of(target_).has_threads && has_meeting_threads(graph_, walk.stage)) {
    lowered.checks.push_back(
        ir::Atomic::make(*stage.as_scatter.combiner, buffer, lowered.indices, value));
    return ir::Block::make(std::move(lowered.checks));
  }
  if (stage.as_scatter.combiner) {
    value = ir::Binary::make(*stage.as_scatter.combiner, ir::Load::make(buffer, lowered.indices),
                             value);
  }
  lowered.checks.push_back(ir::Store::make(buffer, lowered.indices, value));
  return ir::Block::make(std::move(lowered.checks));
}

std::vector<ir::Expr> Innermost::store_indices(const Walk& walk, const Storage& storage,
                                               const ir::Substitution& values) const {
  const Stage& stage = graph_[walk.stage];
  std::vector<ir::Expr> indices;
  for (size_t d = 0; d < stage.data.size(); ++d) {
    const ir::Expr& value = values.at(graph_.axes[stage.data[d]].value);
    // min + offset - min would have to be simplified back to this.
    if (storage.origin[d] && storage.origin[d] == walk.nest.region[d].min) {
      indices.push_back(ir::substitute(walk.nest.offsets[d], walk.renamed));
    } else {
      indices.push_back(storage.place(d, value, facts_));
    }
  }
  return storage.indices(std::move(indices));
}

/// Checks go to `before`: all outputs read first.
ir::Stmt Innermost::store(const Walk& walk, uint32_t output, const ir::Expr& body,
                          const ir::Substitution& values, std::vector<ir::Stmt>& before) {
  const Storage& storage = plan_.storage.at({walk.stage, output});
  return ir::Store::make(storage.buffer, store_indices(walk, storage, values),
                         read(walk, body, values, before));
}

ir::Expr Innermost::read(const Walk& walk, const ir::Expr& body, const ir::Substitution& values,
                         std::vector<ir::Stmt>& before) {
  LoweredBody lowered = lower_reads(graph_, plan_, walk.stage, body, values, facts_, checks_);
  before.insert(before.end(), lowered.checks.begin(), lowered.checks.end());
  return lowered.value;
}

/// One step of the reduction whose first value is `output`. Where it has a condition, nothing is
/// read unless that holds.
ir::Stmt Innermost::update(const Walk& walk, uint32_t output, const ir::Substitution& values,
                           std::vector<ir::Stmt>& before) {
  const ir::Reduce& reduce = *ir::as<ir::Reduce>(graph_[walk.stage].bodies[output]);
  if (!reduce.condition) return combined(walk, output, values, before);
  const ir::Expr condition = read(walk, reduce.condition, values, before);
  facts_.push_condition(condition);
  std::vector<ir::Stmt> inside;
  inside.push_back(combined(walk, output, values, inside));
  facts_.pop();
  return ir::If::make(condition, ir::Block::make(std::move(inside)));
}

ir::Stmt Innermost::combined(const Walk& walk, uint32_t output, const ir::Substitution& values,
                             std::vector<ir::Stmt>& before) {
  const ir::Reduce& reduce = *ir::as<ir::Reduce>(graph_[walk.stage].bodies[output]);
  std::vector<Accumulator> accumulators;
  std::vector<ir::Expr> sources;
  for (const ir::Expr& source : reduce.sources) {
    const Storage& storage = plan_.storage.at({walk.stage, output});
    accumulators.push_back(walk.threads != nullptr
                               ? walk.threads->own(output)
                               : Accumulator{storage.buffer, store_indices(walk, storage, values)});
    ++output;
    sources.push_back(read(walk, source, values, before));
  }
  return combine_values(reduce.how, accumulators, sources);
}

ir::Stmt Innermost::result_of_threads(const Walk& walk, const ThreadReduction& threads) {
  const Walk last{walk.stage, walk.nest, Part::Init, walk.renamed};
  std::vector<ir::Stmt> stmts;
  const ir::Substitution values = values_of(last, stmts);
  const Stage& stage = graph_[walk.stage];
  for (uint32_t output = 0; output < stage.bodies.size();) {
    const ir::Reduce& reduce = *ir::as<ir::Reduce>(stage.bodies[output]);
    std::vector<Accumulator> places;
    std::vector<ir::Expr> sources;
    for (size_t i = 0; i < reduce.how.values(); ++i, ++output) {
      const Storage& storage = plan_.storage.at({walk.stage, output});
      places.push_back({storage.buffer, store_indices(last, storage, values)});
      sources.push_back(threads.whole(output));
      const ir::Expr first =
          reduce.init.empty() ? sources[i] : read(last, reduce.init[i], values, stmts);
      stmts.push_back(ir::Store::make(places[i].buffer, places[i].indices, first));
    }
    if (!reduce.init.empty()) stmts.push_back(combine_values(reduce.how, places, sources));
  }
  ir::Stmt result = ir::Block::make(std::move(stmts));
  for (const Guard& guard : walk.nest.guards) {
    if (guard.is_reduce || analysis::can_prove(guard.condition, facts_)) continue;
    result = ir::If::make(guard.condition, std::move(result), nullptr, true);
  }
  return result;
}

}  // namespace kiln::schedule

// Which nodes become one kernel. Groups begin as single nodes; of all pairs of groups of which one
// reads what the other makes, the pair is joined that is predicted to save most time, until none
// saves any. A pair that has a third group between its two, which would have to run in the middle
// of a kernel, is never joined.
//
//   h = matmul(x, w), y = h + b, z = relu(y)   ->   {h, y, z}: y and z never leave the caches
//
// A greedy merge by benefit over the edges of a graph, as the fusion of XLA and of Halide's
// grouping (Mullapudi et al., 2016) go; the prediction is a roofline: bytes over bandwidth.
#include "compiler/program/fuse.h"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::program {
namespace {

/// What the prediction knows of the machine: seconds.
constexpr double kLaunch = 2e-6;               // between two kernels of a step
constexpr double kPerByteInCache = 1 / 80e9;   // a byte that is written and soon read again
constexpr double kPerByteInMemory = 1 / 25e9;  // one that does not stay in a cache until then
constexpr int64_t kCacheBytes = 1 << 20;
/// A kernel of many stages takes long to compile, and one change compiles all of it again.
constexpr size_t kMostStages = 24;

/// What one node's kernel is, as far as joining goes.
struct Traits {
  size_t stages = 0;
  bool is_product = false;  // a sum of products: blocked for caches, so its loops are its own
};

bool multiplies_reads(const language::Definition& definition,
                      const language::Reduction& reduction) {
  if (reduction.combiner != language::Combiner::Sum) return false;
  const auto* product =
      std::get_if<language::Operation>(&definition.expressions[reduction.sources[0]].node);
  return product != nullptr && product->op == language::Operator::Mul;
}

Traits traits_of(const language::Definition& definition) {
  Traits traits;
  for (const language::Stage& stage : definition.stages) {
    if (std::holds_alternative<language::Placeholder>(stage)) continue;
    ++traits.stages;
    const auto* compute = std::get_if<language::Compute>(&stage);
    if (compute == nullptr || compute->axes.size() < 2) continue;
    const language::Reduction* reduction = definition.whole_reduction(*compute);
    traits.is_product |= reduction != nullptr && multiplies_reads(definition, *reduction);
  }
  return traits;
}

class Fuser {
 public:
  Fuser(const Program& program, const Graph& graph, const Shapes& shapes)
      : program_(program), graph_(graph), shapes_(shapes) {
    for (size_t i = 0; i < graph.order.size(); ++i) {
      const NodeId node = graph.order[i];
      group_of_[node] = i;
      groups_.push_back({.nodes = {node}, .traits = traits_of(shapes.kernels[node].definition)});
    }
    for (const NodeId node : graph.order) {
      for (const ValueId value : program.nodes[node].inputs) {
        const int32_t maker = graph.maker[value];
        if (maker == kGiven) continue;
        const size_t from = group_of_.at(static_cast<NodeId>(maker));
        groups_[group_of_.at(node)].before.insert(from);
      }
    }
    for (const ValueId value : results_of(program))
      results_.insert(value);
  }

  std::vector<std::vector<NodeId>> run() {
    while (const std::optional<Pair> best = best_pair())
      merge(best->producer, best->consumer);
    return in_order();
  }

 private:
  struct Group {
    std::vector<NodeId> nodes;  // in the order of the graph
    Traits traits;
    std::set<size_t> before;  // groups that it reads from
  };
  struct Pair {
    size_t producer;
    size_t consumer;
    double saved;
  };

  std::optional<Pair> best_pair() const {
    std::optional<Pair> best;
    for (size_t consumer = 0; consumer < groups_.size(); ++consumer) {
      for (const size_t producer : groups_[consumer].before) {
        if (!may_join(producer, consumer)) continue;
        const double saved = saved_seconds(producer, consumer);
        if (saved > 0 && (!best || saved > best->saved)) best = Pair{producer, consumer, saved};
      }
    }
    return best;
  }

  bool may_join(size_t producer, size_t consumer) const {
    const Group& a = groups_[producer];
    const Group& b = groups_[consumer];
    if (a.traits.stages + b.traits.stages > kMostStages) return false;
    // Two products have tiles of their own and would only wait for each other in one kernel.
    if (a.traits.is_product && b.traits.is_product) return false;
    return !has_way_around(producer, consumer);
  }

  /// Whether `consumer` also needs `producer` by way of another group.
  bool has_way_around(size_t producer, size_t consumer) const {
    std::vector<size_t> open;
    std::set<size_t> seen;
    for (const size_t before : groups_[consumer].before) {
      if (before != producer) open.push_back(before);
    }
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      for (const size_t before : groups_[at].before) {
        if (before == producer) return true;
        open.push_back(before);
      }
    }
    return false;
  }

  /// What passes between the two is not written for others to read, and there is one start less.
  double saved_seconds(size_t producer, size_t consumer) const {
    double saved = kLaunch;
    std::set<ValueId> passed;
    for (const NodeId node : groups_[consumer].nodes) {
      for (const ValueId value : program_.nodes[node].inputs) {
        const int32_t maker = graph_.maker[value];
        if (maker != kGiven && group_of_.at(static_cast<NodeId>(maker)) == producer)
          passed.insert(value);
      }
    }
    for (const ValueId value : passed) {
      const auto bytes = static_cast<double>(shapes_.values[value].bytes());
      const double each = bytes > kCacheBytes ? kPerByteInMemory : kPerByteInCache;
      const int ways = is_needed_elsewhere(value, consumer) ? 1 : 2;
      saved += ways * bytes * each;
    }
    return saved;
  }

  bool is_needed_elsewhere(ValueId value, size_t consumer) const {
    if (results_.count(value) != 0) return true;
    return std::any_of(graph_.order.begin(), graph_.order.end(), [&](NodeId node) {
      const std::vector<ValueId>& inputs = program_.nodes[node].inputs;
      return group_of_.at(node) != consumer &&
             std::find(inputs.begin(), inputs.end(), value) != inputs.end();
    });
  }

  void merge(size_t producer, size_t consumer) {
    Group& from = groups_[producer];
    Group& into = groups_[consumer];
    into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
    into.traits.stages += from.traits.stages;
    into.traits.is_product |= from.traits.is_product;
    into.before.erase(producer);
    into.before.insert(from.before.begin(), from.before.end());
    for (const NodeId node : from.nodes)
      group_of_[node] = consumer;
    from = {};
    for (Group& group : groups_) {
      if (group.before.erase(producer) != 0) group.before.insert(consumer);
    }
  }

  /// Groups by dependence, first in the order in which the graph meets their last nodes.
  std::vector<std::vector<NodeId>> in_order() const {
    std::vector<std::vector<NodeId>> ordered;
    std::set<size_t> done;
    const auto add = [&](const auto& self, size_t id) -> void {
      if (!done.insert(id).second) return;
      for (const size_t before : groups_[id].before)
        self(self, before);
      std::vector<NodeId>& nodes = ordered.emplace_back();
      for (const NodeId node : graph_.order) {
        if (group_of_.at(node) == id) nodes.push_back(node);
      }
    };
    for (const NodeId node : graph_.order)
      add(add, group_of_.at(node));
    return ordered;
  }

  const Program& program_;
  const Graph& graph_;
  const Shapes& shapes_;
  std::map<NodeId, size_t> group_of_;
  std::vector<Group> groups_;
  std::set<ValueId> results_;
};

}  // namespace

std::vector<std::vector<NodeId>> fuse(const Program& program, const Graph& graph,
                                      const Shapes& shapes) {
  return Fuser(program, graph, shapes).run();
}

}  // namespace kiln::program

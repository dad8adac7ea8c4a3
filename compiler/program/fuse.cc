// Which nodes become one kernel. Each node, in the order of the graph, begins a group, which takes
// in the groups it reads from: always the one that is predicted to save most time, until none saves
// any. A group that is also needed by way of a third one, which would have to run in the middle of
// the kernel, stays apart.
//
//   h = matmul(x, w), y = h + b, z = relu(y)   ->   {h, y, z}: y and z never leave the caches
//
// Products have tiles of their own and stay apart, but for those that one loop over blocks of rows
// holds: what that saves is asked of autoschedule.
//
// A greedy merge by benefit over the edges of a graph, as XLA's fusion and Halide's grouping
// (Mullapudi et al., 2016) do it; the prediction is a roofline: bytes over bandwidth.
#include "compiler/program/fuse.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "compiler/program/join.h"
#include "compiler/program/reach.h"
#include "compiler/program/traits.h"

namespace kiln::program {
namespace {

/// What the prediction knows of the machine: seconds.
constexpr double kLaunch = 2e-6;               // between two kernels of a step
constexpr double kPerByteInCache = 1 / 80e9;   // a byte that is written and soon read again
constexpr double kPerByteInMemory = 1 / 25e9;  // one that does not stay in a cache until then
constexpr int64_t kCacheBytes = 1 << 20;
/// A kernel of many stages takes long to compile, and one change compiles all of it again.
constexpr size_t kMostStages = 24;

class Fuser {
 public:
  Fuser(const Program& program, const Graph& graph, const Shapes& shapes,
        const std::vector<bool>& constant, const SavedByProducts& saved_by_products,
        const HasFastForm& has_fast_form)
      : program_(program),
        graph_(graph),
        shapes_(shapes),
        constant_(constant),
        saved_by_products_(saved_by_products),
        has_fast_form_(has_fast_form),
        group_of_(program.nodes.size(), kNone),
        traits_(program.nodes.size()) {
    for (const NodeId node : graph.order)
      traits_[node] = traits_of(shapes.kernels[node].definition);
    for (const ValueId value : results_of(program))
      results_.insert(value);
  }

  std::vector<std::vector<NodeId>> run() {
    for (const NodeId node : graph_.order)
      add(node);
    return in_order();
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Group {
    std::vector<NodeId> nodes;  // in the order of the graph
    Traits traits;
    std::set<size_t> before;  // groups that it reads from
  };

  /// A group of its own, which then takes in the groups it reads from, the most saving one first.
  void add(NodeId node) {
    const size_t own = groups_.size();
    group_of_[node] = own;
    groups_.push_back({.nodes = {node}, .traits = traits_[node]});
    for (const ValueId value : program_.nodes[node].inputs) {
      const int32_t maker = graph_.maker[value];
      if (maker != kGiven) groups_[own].before.insert(group_of_[static_cast<size_t>(maker)]);
    }
    while (const std::optional<size_t> producer = best_producer(own))
      merge(*producer, own);
  }

  std::optional<size_t> best_producer(size_t consumer) const {
    std::optional<size_t> best;
    double most = 0;
    for (const size_t producer : groups_[consumer].before) {
      if (!may_join(producer, consumer)) continue;
      const double saved = saved_seconds(producer, consumer);
      if (saved <= most) continue;
      best = producer;
      most = saved;
    }
    return best;
  }

  bool may_join(size_t producer, size_t consumer) const {
    const Group& a = groups_[producer];
    const Group& b = groups_[consumer];
    if (constant_[a.nodes[0]] != constant_[b.nodes[0]]) return false;
    if (a.traits.stages + b.traits.stages > kMostStages) return false;
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

  /// Two products have tiles of their own, unless one reads the other row by row. What does so
  /// takes in nothing with which it would not any more.
  double saved_seconds(size_t producer, size_t consumer) const {
    const size_t first = groups_[producer].traits.products;
    const size_t second = groups_[consumer].traits.products;
    if (first > 0 && second > 0) return saved_by_rows(producer, consumer);
    const bool has_several = first > 1 || second > 1;
    if (has_several && saved_by_rows(producer, consumer) == 0) return 0;
    return undoes_form(producer, consumer) ? 0 : saved_by_joining(producer, consumer);
  }

  /// Whether a product would lose its fast form to a copy, which costs less. What is read by the
  /// product is looked at beside it alone: what comes after it in its group may have a form of its
  /// own with more to come, as a softmax in an attention.
  bool undoes_form(size_t producer, size_t consumer) const {
    const bool is_read = groups_[consumer].traits.products == 1;
    const Group& product = groups_[is_read ? consumer : producer];
    const Group& copy = groups_[is_read ? producer : consumer];
    if (!has_fast_form_ || product.traits.products != 1 || !copy.traits.is_copy) return false;
    const NodeId node = *std::ranges::find_if(product.nodes, is_product_);
    if (is_read && !reads_from(node, producer)) return false;
    const std::vector<NodeId> alone = is_read ? std::vector{node} : product.nodes;
    const bool loses =
        has_fast_form_(kernel_of(alone)) && !has_fast_form_(kernel_of(together(alone, copy.nodes)));
    return loses || undoes_chain(node, copy.nodes);
  }

  /// Whether copies undo that a product is computed with the one before it or after it in one
  /// kernel, as the two of an attention are.
  bool undoes_chain(NodeId product, const std::vector<NodeId>& copies) const {
    if (!saved_by_products_) return false;
    return std::ranges::any_of(chains_of(product), [&](const std::vector<NodeId>& chain) {
      return saved_by_products_(kernel_of(chain)) > 0 &&
             saved_by_products_(kernel_of(together(chain, copies))) == 0;
    });
  }

  /// Two products, of which this is one, and what lies between them.
  std::vector<std::vector<NodeId>> chains_of(NodeId product) const {
    const auto from = [&](NodeId node, Direction direction) {
      return reach(program_, graph_, node, direction, kMostStages, is_product_);
    };
    std::vector<std::vector<NodeId>> chains;
    const auto add_chain = [&](NodeId first, const Reach& after, NodeId last, const Reach& before) {
      chains.push_back({first, last});
      std::ranges::set_intersection(after.passed, before.passed, std::back_inserter(chains.back()));
    };
    const Reach after = from(product, Direction::Readers);
    for (const NodeId last : after.ends)
      add_chain(product, after, last, from(last, Direction::Makers));
    const Reach before = from(product, Direction::Makers);
    for (const NodeId first : before.ends)
      add_chain(first, from(first, Direction::Readers), product, before);
    return chains;
  }

  static std::vector<NodeId> together(std::vector<NodeId> nodes, const std::vector<NodeId>& more) {
    nodes.insert(nodes.end(), more.begin(), more.end());
    return nodes;
  }

  bool reads_from(NodeId node, size_t group) const {
    return std::ranges::any_of(program_.nodes[node].inputs, [&](ValueId value) {
      const int32_t maker = graph_.maker[value];
      return maker != kGiven && group_of_[static_cast<size_t>(maker)] == group;
    });
  }

  double saved_by_rows(size_t producer, size_t consumer) const {
    if (!saved_by_products_) return 0;
    return saved_by_products_(
        kernel_of(together(groups_[producer].nodes, groups_[consumer].nodes)));
  }

  /// What these nodes would be together.
  language::Kernel kernel_of(const std::vector<NodeId>& nodes) const {
    const auto is_outside = [&](NodeId node) { return std::ranges::count(nodes, node) == 0; };
    return join(program_, shapes_, sorted(nodes),
                [&](ValueId value) {
                  return results_.count(value) != 0 ||
                         std::ranges::any_of(graph_.readers[value], is_outside);
                })
        .kernel;
  }

  /// What passes between the two is not written for others to read, and there is one start less.
  double saved_by_joining(size_t producer, size_t consumer) const {
    double saved = kLaunch;
    std::set<ValueId> passed;
    for (const NodeId node : groups_[consumer].nodes) {
      for (const ValueId value : program_.nodes[node].inputs) {
        const int32_t maker = graph_.maker[value];
        if (maker != kGiven && group_of_[static_cast<size_t>(maker)] == producer)
          passed.insert(value);
      }
    }
    for (const ValueId value : passed) {
      const auto bytes = static_cast<double>(shapes_.values[value].bytes());
      const double each = bytes > kCacheBytes ? kPerByteInMemory : kPerByteInCache;
      saved += (is_needed_elsewhere(value, consumer) ? 1 : 2) * bytes * each;
    }
    return saved;
  }

  bool is_needed_elsewhere(ValueId value, size_t consumer) const {
    if (results_.count(value) != 0) return true;
    return std::ranges::any_of(graph_.readers[value],
                               [&](NodeId node) { return group_of_[node] != consumer; });
  }

  void merge(size_t producer, size_t consumer) {
    Group& from = groups_[producer];
    Group& into = groups_[consumer];
    into.nodes.insert(into.nodes.begin(), from.nodes.begin(), from.nodes.end());
    into.traits.stages += from.traits.stages;
    into.traits.products += from.traits.products;
    into.traits.is_copy = into.traits.is_copy && from.traits.is_copy;
    into.before.erase(producer);
    into.before.insert(from.before.begin(), from.before.end());
    for (const NodeId node : from.nodes)
      group_of_[node] = consumer;
    from = {};
    for (Group& group : groups_) {
      if (group.before.erase(producer) != 0) group.before.insert(consumer);
    }
  }

  /// Groups by dependence, first in the order in which the graph meets their nodes. By hand, not by
  /// recursion: chains can be long.
  std::vector<std::vector<NodeId>> in_order() const {
    std::vector<std::vector<NodeId>> ordered;
    std::vector<bool> done(groups_.size(), false);
    for (const NodeId root : graph_.order) {
      std::vector<size_t> open = {group_of_[root]};
      while (!open.empty()) {
        const size_t at = open.back();
        const size_t before = open.size();
        for (const size_t needed : groups_[at].before) {
          if (!done[needed]) open.push_back(needed);
        }
        if (open.size() > before) continue;
        open.pop_back();
        if (done[at]) continue;
        done[at] = true;
        ordered.push_back(sorted(groups_[at].nodes));
      }
    }
    return ordered;
  }

  std::vector<NodeId> sorted(std::vector<NodeId> nodes) const {
    std::vector<size_t> position(program_.nodes.size());
    for (size_t i = 0; i < graph_.order.size(); ++i)
      position[graph_.order[i]] = i;
    std::ranges::sort(nodes, {}, [&](NodeId node) { return position[node]; });
    return nodes;
  }

  const Program& program_;
  const Graph& graph_;
  const Shapes& shapes_;
  const std::vector<bool>& constant_;  // by node
  const SavedByProducts& saved_by_products_;
  const HasFastForm& has_fast_form_;
  std::vector<size_t> group_of_;  // by node
  std::vector<Traits> traits_;    // by node
  const std::function<bool(NodeId)> is_product_ = [this](NodeId node) {
    return traits_[node].products > 0;
  };
  std::vector<Group> groups_;
  std::set<ValueId> results_;
};

}  // namespace

std::vector<std::vector<NodeId>> fuse(const Program& program, const Graph& graph,
                                      const Shapes& shapes, const std::vector<bool>& constant,
                                      const SavedByProducts& saved_by_products,
                                      const HasFastForm& has_fast_form) {
  return Fuser(program, graph, shapes, constant, saved_by_products, has_fast_form).run();
}

}  // namespace kiln::program

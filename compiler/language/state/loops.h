#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace kiln::language {

using AxisId = uint32_t;

/// parent = outer * (extent of inner) + inner. One of factor and parts is set.
struct Split {
  AxisId parent;
  AxisId outer;
  AxisId inner;
  std::optional<int64_t> factor;
  std::optional<int64_t> parts;
};

/// The first of `parts` is the outermost.
struct Fuse {
  std::vector<AxisId> parts;
  AxisId fused;
};
using Relation = std::variant<Split, Fuse>;

/// One of the axes that the relation is about; all are of one kind.
AxisId made_of(const Relation& relation);

/// What a step makes of the loops of a nest.
struct LoopChange {
  std::vector<Relation> relations;  // one after the other
  std::vector<AxisId> order;        // then these stand in this order, in the places they hold

  bool empty() const { return relations.empty() && order.empty(); }
  /// The same of loops that have other ids.
  LoopChange renamed(const std::function<AxisId(AxisId)>& name) const;
};

/// The loops of a stage, and how they were made of its axes.
struct Loops {
  std::vector<AxisId> leaves;  // outermost first
  std::vector<Relation> relations;

  bool has(AxisId axis) const { return place_of(axis) < leaves.size(); }
  /// How many loops stand outside of it; the number of loops when it is none of them.
  size_t place_of(AxisId axis) const;
  /// The loops that the change is about are loops here.
  void apply(const LoopChange& change);
  /// Forgets loops and how they were made: `axes` are the loops.
  void start_with(std::vector<AxisId> axes);
};

}  // namespace kiln::language

// How many threads share a row, how much of it each moves at once, and what of it stays in their
// registers, so that memory is read once:
//
//   M[i] = max(X[i, ..1000]); E[i, j] = exp(X[i, j] - M[i]); Y[i, j] = E[i, j] / sum(E[i, ..])
//     ->  a warp, four neighbours of a thread at once; X and E are kept, 32 elements a thread
//
// A warp needs no barriers, so longer rows get more threads only where a thread would hold too
// much. How many there are is the order of a sum, so it depends on the definition alone.
#include "compiler/autoschedule/templates/row_line.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/row_places.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kAnyThreads = 128;  // of a row that is not known
// Of a whole tensor there is one row, which has more to do.
constexpr int64_t kThreadsOfAll = 512;
constexpr int64_t kMostThreads = 1024;
// Of all that is kept of a row: a quarter of the registers that a thread may have, so that 32 warps
// have room on a multiprocessor.
constexpr int64_t kKeptElements = 64;
constexpr int64_t kVectorsOfWarp = 8;  // that each thread of a row's only warp moves

/// Functions and divisions, which take longer than a register is worth.
class IsCostly : public ir::Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::Call& call) override {
    found = found || (call.op >= ir::Operator::Exp && call.op <= ir::Operator::Hypot);
    Visitor::visit(call);
  }
  void visit(const ir::Binary& node) override {
    found = found || node.op == ir::Operator::Div;
    Visitor::visit(node);
  }
};

bool is_costly(const Stage& stage) {
  IsCostly walk;
  for (const ir::Expr& body : stage.bodies)
    walk(body);
  return walk.found;
}

class Line {
 public:
  Line(const StageGraph& graph, const RowStages& rows, const std::optional<RowPart>& part,
       const std::vector<StageId>& reductions, const std::vector<StageId>& inlined)
      : graph_(graph),
        last_(rows.last),
        dimensions_(rows.dimensions),
        part_(part),
        inlined_(inlined),
        places_(graph, rows.last, rows.dimensions, part) {
    members_ = reductions;
    members_.insert(members_.end(), inlined.begin(), inlined.end());
    members_.push_back(last_);
    // What is one number of a row has no line.
    std::ranges::copy_if(members_, std::back_inserter(lined_), [&](StageId id) {
      return graph[id].is_reduction() || !has_no_line(graph, id, dimensions_);
    });
  }

  RowLine found() const {
    RowLine line;
    line.part = part_;
    set_lanes(line);
    const std::optional<int64_t> length = this->length();
    if (graph_[last_].data.empty()) {
      line.threads = kThreadsOfAll;
      return line;
    }
    if (!length) return line;
    keep(line);
    const auto held = static_cast<int64_t>(line.kept.size() + line.computed_once.size());
    if (held > 0) {
      line.threads = ir::kWarp;
      const auto per_thread = [&] {
        const int64_t at_once = line.threads * line.lanes;
        return (*length + at_once - 1) / at_once * line.lanes;
      };
      while (line.threads < kMostThreads && held * per_thread() > kKeptElements)
        line.threads *= 2;
      if (held * per_thread() <= kKeptElements) return line;
      line.kept.clear();
      line.computed_once.clear();
    }
    const bool is_for_warp = *length <= ir::kWarp * line.lanes * kVectorsOfWarp;
    line.threads = is_for_warp ? ir::kWarp : kAnyThreads;
    return line;
  }

 private:
  /// The constant length that all members have; nothing where there is none.
  std::optional<int64_t> length() const {
    std::optional<int64_t> length;
    for (const StageId id : lined_) {
      auto extent = constant_extent_of(graph_, line_of(graph_, id, dimensions_));
      if (extent && part_ && id == last_) *extent *= part_->size;
      if (!extent || (length && *length != *extent)) return std::nullopt;
      length = extent;
    }
    return length;
  }

  /// Neighbours of 128 bits; one where rows begin at no multiples of them.
  void set_lanes(RowLine& line) const {
    const int64_t lanes = lanes_of_vector();
    const auto is_whole = [&](StageId id) {
      return constant_extent(graph_, line_axis(graph_[id])).value_or(1) % lanes == 0;
    };
    if (std::ranges::all_of(lined_, is_whole)) {
      line.lanes = lanes;
    } else if (length().value_or(1) % lanes == 0 &&
               std::ranges::all_of(lined_, [&](StageId id) { return goes_on(id); })) {
      line.lanes = lanes;
      line.crosses_axes = true;
    }
  }

  /// Whether the neighbours of the last element of an axis are the first of the next one, in all of
  /// memory that a member reads along its line.
  bool goes_on(StageId id) const {
    const Stage& stage = graph_[id];
    bool is_so = !stage.is_reduction() || may_be_one_loop(graph_, stage.reduce);
    for_each_read_of(id, [&](const ir::TensorRead& read) {
      if (is_contiguous_in(graph_, read, line_axis(stage)) && !is_member(read.stage))
        is_so = is_so && places_.place_of(id, read).has_value();
    });
    return is_so;
  }

  /// Of the widest element that lies along the line.
  int64_t lanes_of_vector() const {
    int64_t bytes = 1;
    for (const StageId id : lined_) {
      const Stage& stage = graph_[id];
      if (id == last_ && !stage.is_reduction())
        bytes = std::max<int64_t>(bytes, size_of(stage.types[0]));
      for_each_read_of(id, [&](const ir::TensorRead& read) {
        if (is_contiguous_in(graph_, read, line_axis(stage)) && !is_member(read.stage))
          bytes = std::max<int64_t>(bytes, size_of(read.type.element));
      });
    }
    return std::max<int64_t>(kVectorBytesOfThread / bytes, 1);
  }

  void keep(RowLine& line) const {
    const bool is_one_line = std::ranges::all_of(lined_, [&](StageId id) {
      const Stage& stage = graph_[id];
      return !stage.is_reduction() || may_be_one_loop(graph_, stage.reduce);
    });
    if (!is_one_line) return;
    for (const StageId id : inlined_) {
      if (has_line(id) && is_costly(graph_[id]) && times_read(id, {}) > 1 && place_of({id, 0}))
        line.computed_once.push_back(id);
    }
    for (const language::TensorId tensor : tensors()) {
      const std::optional<RowPlace> place = place_of(tensor);
      if (!place) continue;
      int64_t times = 0;
      std::vector<StageId> readers;
      for (const StageId id : members_) {
        if (!reads(id, tensor)) continue;
        readers.push_back(id);
        times += times_read(id, line.computed_once);
      }
      if (times > 1) line.kept.push_back({tensor, readers, place->from});
    }
  }

  /// How often the elements of a member are computed: once, or where they are read.
  int64_t times_read(StageId id, const std::vector<StageId>& computed_once) const {
    const bool is_inlined = std::ranges::find(inlined_, id) != inlined_.end();
    if (!is_inlined || std::ranges::find(computed_once, id) != computed_once.end()) return 1;
    int64_t times = 0;
    for (const StageId reader : members_) {
      if (reader != id && reads(reader, {id, 0})) times += times_read(reader, computed_once);
    }
    return times;
  }

  /// What members read of other stages, in order.
  std::vector<language::TensorId> tensors() const {
    std::vector<language::TensorId> found;
    for (const StageId id : members_) {
      for_each_read_of(id, [&](const ir::TensorRead& read) {
        const language::TensorId tensor = {read.stage, read.output};
        if (!is_member(read.stage) && std::ranges::find(found, tensor) == found.end())
          found.push_back(tensor);
      });
    }
    return found;
  }

  /// Where members read a tensor, if each read is of the reader's own place in the row.
  std::optional<RowPlace> place_of(language::TensorId tensor) const {
    std::optional<RowPlace> found;
    bool is_same = true;
    for (const StageId id : members_) {
      for_each_read_of(id, [&](const ir::TensorRead& read) {
        if (!is_same || language::TensorId{read.stage, read.output} != tensor) return;
        const auto place = has_line(id) ? places_.place_of(id, read) : std::nullopt;
        is_same = place && (!found || found->is_same(*place));
        if (is_same) found = place;
      });
    }
    return is_same ? found : std::nullopt;
  }

  bool reads(StageId id, language::TensorId tensor) const {
    bool found = false;
    for_each_read_of(id, [&](const ir::TensorRead& read) {
      found = found || language::TensorId{read.stage, read.output} == tensor;
    });
    return found;
  }

  bool has_line(StageId id) const { return std::ranges::find(lined_, id) != lined_.end(); }
  bool is_member(StageId id) const { return std::ranges::find(members_, id) != members_.end(); }

  template <typename Function>
  void for_each_read_of(StageId id, const Function& function) const {
    for (const ir::Expr& part : schedule::reading_parts(graph_, graph_[id]))
      schedule::for_each_read(part, function);
  }

  const StageGraph& graph_;
  const StageId last_;
  const size_t dimensions_;
  const std::optional<RowPart> part_;
  const std::vector<StageId>& inlined_;
  const RowPlaces places_;
  std::vector<StageId> members_;
  std::vector<StageId> lined_;
};

}  // namespace

RowLine row_line_of(const StageGraph& graph, const RowStages& rows,
                    const std::optional<RowPart>& part, const std::vector<StageId>& reductions,
                    const std::vector<StageId>& inlined) {
  return Line(graph, rows, part, reductions, inlined).found();
}

std::vector<AxisId> line_of(const StageGraph& graph, StageId id, size_t dimensions) {
  const Stage& stage = graph[id];
  if (!stage.is_reduction())
    return {stage.data.begin() + static_cast<long>(dimensions), stage.data.end()};
  if (may_be_one_loop(graph, stage.reduce)) return stage.reduce;
  return {stage.reduce.back()};
}

AxisId line_axis(const Stage& stage) {
  return stage.is_reduction() ? stage.reduce.back() : stage.data.back();
}

}  // namespace kiln::autoschedule

// Checks each scan by itself: as many inits, updates and states, shapes that agree but for time,
// and an axis of time that covers what init leaves.
//
//   init (2, n), update and state (m, n)     axis from 2, of m - 2 steps
#include <algorithm>

#include "compiler/language/check/check.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/describe.h"

namespace kiln::language {
namespace {

/// Checks each scan by itself: the lists, the shapes, the types, the time axis.
class ScanShapes {
 public:
  ScanShapes(Checked& checked, StageId id)
      : checked_(checked),
        definition_(checked.definition()),
        id_(id),
        scan_(std::get<Scan>(definition_.stages[id])) {}

  void check() {
    for (size_t i = 0; i < scan_.state.size(); ++i) {
      check_types(i);
      check_update_shape(i);
      check_init_shape(i);
      check_time(i);
    }
  }

 private:
  /// "update", or "update 1" where there are several.
  std::string part(std::string_view what, size_t i) const {
    return scan_.state.size() == 1 ? std::string(what) : fmt::format("{} {}", what, i);
  }

  void check_types(size_t i) {
    const DType state = definition_.type_of(scan_.state[i]);
    check_type("init", i, definition_.type_of(scan_.init[i]), state);
    check_type("update", i, definition_.type_of(scan_.update[i]), state);
  }

  void check_type(std::string_view what, size_t i, DType type, DType state) {
    if (type == state) return;
    fail(ErrorKind::InvalidArgument, "SCAN_TYPE", "{} of scan {} is {} but its state is {}",
         part(what, i), checked_.stage(id_), type, state);
  }

  void check_update_shape(size_t i) {
    const std::vector<ExprId> update = definition_.shape_of(scan_.update[i]);
    const std::vector<ExprId> state = definition_.shape_of(scan_.state[i]);
    if (!state.empty() && scan_.dimension >= state.size()) {
      fail(ErrorKind::InvalidArgument, "SCAN_SHAPE",
           "{} of scan {} has {} dimension{}, so time cannot be dimension {}", part("state", i),
           checked_.stage(id_), state.size(), state.size() == 1 ? "" : "s", scan_.dimension);
    }
    const bool agree =
        update.size() == state.size() &&
        std::equal(update.begin(), update.end(), state.begin(),
                   [&](ExprId a, ExprId b) { return constant_difference(definition_, a, b) == 0; });
    if (!agree) fail_shapes("update", i, update, state);
    if (state.empty()) {
      fail(ErrorKind::InvalidArgument, "SCAN_SHAPE",
           "{} of scan {} has no dimensions, but must have one for time", part("state", i),
           checked_.stage(id_));
    }
  }

  void check_init_shape(size_t i) {
    const std::vector<ExprId> init = definition_.shape_of(scan_.init[i]);
    const std::vector<ExprId> state = definition_.shape_of(scan_.state[i]);
    if (init.size() != state.size()) {
      const bool lacks_time = init.size() + 1 == state.size();
      fail_shapes("init", i, init, state, lacks_time ? "; its time dimension is missing" : "");
    }
    for (size_t d = 0; d < state.size(); ++d) {
      if (d == scan_.dimension) continue;
      if (constant_difference(definition_, init[d], state[d]) != 0) {
        fail(ErrorKind::InvalidArgument, "SCAN_SHAPE",
             "{} of scan {} has shape {} but its state has shape {}; dimension {} must agree",
             part("init", i), checked_.stage(id_), shape(init), shape(state), d);
      }
    }
  }

  [[noreturn]] void fail_shapes(std::string_view what, size_t i, const std::vector<ExprId>& given,
                                const std::vector<ExprId>& state, std::string_view way_out = "") {
    fail(ErrorKind::InvalidArgument, "SCAN_SHAPE",
         "{} of scan {} has shape {} but its state has shape {}{}", part(what, i),
         checked_.stage(id_), shape(given), shape(state), way_out);
  }

  /// The axis starts at the number of initial steps and ends with the update.
  void check_time(size_t i) {
    const std::string& name = checked_.stage(id_);
    const ExprId initial = definition_.shape_of(scan_.init[i])[scan_.dimension];
    const auto steps = constant_value(definition_, initial);
    if (!steps) {
      fail(ErrorKind::Unsupported, "SCAN_INITIAL_STEPS",
           "{} of scan {} has {} steps; the number of initial steps must be a constant",
           part("init", i), name, text(initial));
    }
    if (*steps < 1) {
      fail(ErrorKind::InvalidArgument, "SCAN_INITIAL_STEPS",
           "{} of scan {} has {} steps, but must have at least 1", part("init", i), name, *steps);
    }
    const Axis& axis = definition_.axes[scan_.axis];
    if (constant_value(definition_, axis.minimum) != steps) {
      fail(ErrorKind::InvalidArgument, "SCAN_TIME", "scan {} starts at step {} but {} gives {}",
           name, text(axis.minimum), part("init", i), *steps);
    }
    const ExprId all = definition_.shape_of(scan_.update[i])[scan_.dimension];
    if (const auto value = constant_value(definition_, all); value && *value < *steps) {
      fail(ErrorKind::InvalidArgument, "SCAN_TIME",
           "scan {} has {} steps, but must have at least {} (its initial steps)", name, *value,
           *steps);
    }
    if (constant_difference(definition_, all, axis.extent) != steps) {
      fail(ErrorKind::InvalidArgument, "SCAN_TIME",
           "scan {} takes {} steps after its {} initial ones, but {} has {}", name,
           text(axis.extent), *steps, part("update", i), text(all));
    }
  }

  std::string text(ExprId expr) const { return text_of(definition_, checked_.kernel.names, expr); }
  std::string shape(const std::vector<ExprId>& extents) const {
    return shape_text(definition_, checked_.kernel.names, extents);
  }

  Checked& checked_;
  const Definition& definition_;
  StageId id_;
  const Scan& scan_;
};

}  // namespace

void check_scans(Checked& checked) {
  const Definition& definition = checked.definition();
  checked.facts.state_of.assign(definition.stages.size(), kNoOwner);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const auto* scan = std::get_if<Scan>(&definition.stages[id]);
    if (scan == nullptr) continue;
    at_stage(checked, id, [&] {
      ScanShapes(checked, id).check();
      for (const TensorId state : scan->state) {
        int& owner = checked.facts.state_of[state.stage];
        if (owner != kNoOwner) {
          fail(ErrorKind::InvalidArgument, "SCAN_STATE",
               "{} is a state of scan {} already; each state is a placeholder of its own",
               checked.tensor(state), checked.stage(static_cast<StageId>(owner)));
        }
        owner = static_cast<int>(id);
      }
    });
  }
  check_cells(checked);
}

}  // namespace kiln::language

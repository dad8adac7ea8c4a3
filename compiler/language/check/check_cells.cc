// Decides what a scan computes at each step. Its cell is all that reads the state on the way to the
// updates, found by one sweep through the stages, since a stage reads earlier ones only.
//
//   H = tanh(S.state[t - 1]); S.update[t] = H[t] + X[t]     H is in the cell, X is not
//
// The state may be read at steps that exist by then, another stage of the cell at its own step
// only: nothing else of it is kept.
#include <algorithm>

#include "compiler/language/check/check.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/check/time_dimensions.h"
#include "compiler/language/describe.h"

namespace kiln::language {
namespace {

/// Finds the cell of each scan: its updates, and the stages that read its state on the way to them.
/// Inside, the state may be read at earlier steps only; outside, only the scan itself may be read.
class CellChecker {
 public:
  explicit CellChecker(Checked& checked)
      : checked_(checked), definition_(checked.definition()), facts_(checked.facts) {}

  void check() {
    // A cell begins with the states; stages that read it join in check_compute().
    facts_.cell_of = facts_.state_of;
    time_ = time_dimensions(definition_);
    claim_updates();
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      at_stage(checked_, id, [&] {
        if (const auto* compute = std::get_if<Compute>(&definition_.stages[id])) {
          check_compute(id, *compute);
        } else if (const auto* scan = std::get_if<Scan>(&definition_.stages[id])) {
          check_scan(id, *scan);
        } else if (std::holds_alternative<Scatter>(definition_.stages[id])) {
          check_scatter(id);
        }
      });
    }
    for (const TensorId parameter : definition_.parameters) {
      check_parameter(parameter);
    }
  }

 private:
  void claim_updates() {
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      const auto* scan = std::get_if<Scan>(&definition_.stages[id]);
      if (scan == nullptr) continue;
      at_stage(checked_, id, [&] { claim_updates(id, *scan); });
    }
  }

  static std::string_view name_of_kind(const Stage& stage) {
    if (std::holds_alternative<Scan>(stage)) return "scan";
    return std::holds_alternative<Scatter>(stage) ? "scatter" : "placeholder";
  }

  void claim_updates(StageId id, const Scan& scan) {
    std::vector<TensorId> sorted = scan.update;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      fail(ErrorKind::InvalidArgument, "SCAN_UPDATE", "scan {} has {} as the update of two states",
           checked_.stage(id), checked_.tensor(*twice));
    }
    for (const TensorId update : scan.update) {
      if (!std::holds_alternative<Compute>(definition_.stages[update.stage])) {
        fail(ErrorKind::InvalidArgument, "SCAN_UPDATE",
             "the update of scan {} must be computed, but {} is a {}", checked_.stage(id),
             checked_.tensor(update), name_of_kind(definition_.stages[update.stage]));
      }
      int& cell = facts_.cell_of[update.stage];
      if (cell != kNoOwner && cell != static_cast<int>(id)) {
        fail(ErrorKind::InvalidArgument, "SCAN_UPDATE",
             "{} is the update of scan {} and of scan {}; each needs one of its own",
             checked_.tensor(update), checked_.stage(static_cast<StageId>(cell)),
             checked_.stage(id));
      }
      cell = static_cast<int>(id);
    }
  }

  void check_compute(StageId id, const Compute& compute) {
    for (const TensorId tensor : facts_.stage_reads[id]) {
      const int cell = facts_.cell_of[tensor.stage];
      if (cell == kNoOwner) continue;
      int& own = facts_.cell_of[id];
      if (own != kNoOwner && own != cell) {
        fail(ErrorKind::Unsupported, "SCAN_CELL",
             "{} belongs to the cells of scan {} and of scan {}; a stage can be part of one only",
             checked_.stage(id), scan_name(own), scan_name(cell));
      }
      own = cell;
    }
    const int cell = facts_.cell_of[id];
    if (cell == kNoOwner) return;
    // Stages are in order, so one behind the scan is no part of its steps any more.
    if (cell < static_cast<int>(id)) fail_after(id, cell);
    refuse_init(id, static_cast<StageId>(cell));
    if (compute.axes.empty()) {
      fail(ErrorKind::Unsupported, "SCAN_CELL",
           "{} is part of the cell of scan {}, so one of its dimensions must be time",
           checked_.stage(id), scan_name(cell));
    }
    check_extent(id, compute, static_cast<StageId>(cell));
    for (const ExprId body : compute.bodies) {
      check_reads(id, compute, body);
    }
    for (const ExprId expr : touched_) {
      seen_[expr] = false;
    }
    touched_.clear();
  }

  /// A stage after the scan reads the scan, not its parts.
  [[noreturn]] void fail_after(StageId id, int cell) {
    for (const TensorId tensor : facts_.stage_reads[id]) {
      if (facts_.cell_of[tensor.stage] != cell) continue;
      fail_outside(checked_.stage(id) + " reads", tensor, cell);
    }
    KILN_CHECK(false && "a stage of a cell reads another of it");
    throw;
  }

  /// Of a reader that sees a part of the scan which exists for one step only.
  [[noreturn]] void fail_outside(const std::string& user, TensorId tensor, int cell) {
    const bool state = facts_.state_of[tensor.stage] != kNoOwner;
    fail(ErrorKind::InvalidArgument, "SCAN_CELL", "{} {}, {} of scan {}; read {} instead", user,
         checked_.tensor(tensor), state ? "the state" : "a part of the cell", scan_name(cell),
         scan_name(cell));
  }

  /// The dimension of a tensor of a cell that is time.
  size_t time_of(StageId id) const { return static_cast<size_t>(time_[id]); }

  /// Every stage of a cell has the scan's steps as one of its dimensions.
  void check_extent(StageId id, const Compute& compute, StageId cell) {
    const Scan& scan = std::get<Scan>(definition_.stages[cell]);
    const ExprId steps = definition_.shape_of(scan.state[0])[scan.dimension];
    const ExprId extent = definition_.axes[compute.axes[time_of(id)]].extent;
    if (constant_difference(definition_, steps, extent) == 0) return;
    const SourceMap& names = checked_.kernel.names;
    fail(ErrorKind::Unsupported, "SCAN_CELL",
         "{} is part of the cell of scan {}, so its {} must be {} (the steps), but is {}",
         checked_.stage(id), checked_.stage(cell),
         time_of(id) == 0 ? "first dimension" : fmt::format("dimension {}", time_of(id)),
         text_of(definition_, names, steps), text_of(definition_, names, extent));
  }

  void check_reads(StageId id, const Compute& compute, ExprId expr) {
    // Shared parts are visited once; the flags are taken back one by one, or a definition of many
    // small stages would cost the square of its size.
    if (seen_.empty()) seen_.resize(definition_.expressions.size());
    if (seen_[expr]) return;
    seen_[expr] = true;
    touched_.push_back(expr);
    const auto& node = definition_.expressions[expr].node;
    if (const auto* read = std::get_if<Read>(&node)) {
      if (facts_.cell_of[read->tensor.stage] != kNoOwner) check_time(id, compute, *read);
      for (const ExprId index : read->indices) {
        check_reads(id, compute, index);
      }
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        check_reads(id, compute, operand);
      }
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      check_reads(id, compute, cast->operand);
    } else if (const auto* reduction = std::get_if<Reduction>(&node)) {
      for (const AxisId axis : reduction->axes) {
        check_reads(id, compute, definition_.axes[axis].minimum);
        check_reads(id, compute, definition_.axes[axis].extent);
      }
      for (const ExprId part : parts_of(*reduction))
        check_reads(id, compute, part);
    }
  }

  /// A read at t - d, or t + d in reverse, where t is the stage's own axis of time: of the state
  /// with d in 1 .. k, of a stage of the cell with d = 0.
  void check_time(StageId id, const Compute& compute, const Read& read) {
    const auto cell = static_cast<StageId>(facts_.cell_of[id]);
    const Scan& scan = std::get<Scan>(definition_.stages[cell]);
    const AxisId time = compute.axes[time_of(id)];
    const ExprId index = read.indices[time_of(read.tensor.stage)];
    const LinearForm form = linear_form(definition_, index);
    const bool of_own_step = form.terms == std::map<std::string, int64_t>{{linear_term(time), 1}};
    if (facts_.state_of[read.tensor.stage] == kNoOwner) {
      if (of_own_step && form.constant == 0) return;
      fail(ErrorKind::Unsupported, "SCAN_CELL",
           "scan {}: {} reads {} at {}; a stage of the cell may be read only at {} (current step)",
           checked_.stage(cell), reader(id, scan), checked_.tensor(read.tensor),
           text_of(definition_, checked_.kernel.names, index), checked_.axis(time));
    }
    // In the order in which steps run: in reverse t + 1 comes before t.
    const int64_t ahead = scan.reverse ? -form.constant : form.constant;
    if (of_own_step && ahead <= -1 && ahead >= -initial_steps(scan)) return;
    fail_time(id, compute, read, of_own_step ? std::optional(ahead) : std::nullopt);
  }

  int64_t initial_steps(const Scan& scan) const {
    return *constant_value(definition_, definition_.shape_of(scan.init[0])[scan.dimension]);
  }

  /// `ahead`: how many steps after its own the stage reads, in the order in which they run.
  [[noreturn]] void fail_time(StageId id, const Compute& compute, const Read& read,
                              std::optional<int64_t> ahead) {
    const auto cell = static_cast<StageId>(facts_.cell_of[id]);
    const Scan& scan = std::get<Scan>(definition_.stages[cell]);
    const int64_t steps = initial_steps(scan);
    const std::string& time = checked_.axis(compute.axes[time_of(id)]);
    const std::string who = fmt::format("scan {}: {}", checked_.stage(cell), reader(id, scan));
    const std::string state = state_text(scan, read.tensor);
    if (ahead && *ahead < 0) {
      fail(ErrorKind::InvalidArgument, "SCAN_TIME", "{} reads {} {} steps {} but init gives {}",
           who, state, -static_cast<uint64_t>(*ahead), scan.reverse ? "ahead" : "back", steps);
    }
    const char sign = scan.reverse ? '+' : '-';
    const std::string allowed = steps == 1
                                    ? fmt::format("{}{}1", time, sign)
                                    : fmt::format("{}{}1 .. {}{}{}", time, sign, time, sign, steps);
    const std::string_view which = !ahead         ? ""
                                   : *ahead == 0  ? " (current step)"
                                   : scan.reverse ? " (an earlier step)"
                                                  : " (a later step)";
    const ExprId index = read.indices[time_of(read.tensor.stage)];
    fail(ErrorKind::InvalidArgument, "SCAN_TIME", "{} reads {} at {}{}; it may read only {}", who,
         state, text_of(definition_, checked_.kernel.names, index), which, allowed);
  }

  /// "update", "update 1" or the name of another stage of the cell.
  std::string reader(StageId id, const Scan& scan) const {
    for (size_t i = 0; i < scan.update.size(); ++i) {
      if (scan.update[i].stage != id) continue;
      return scan.update.size() == 1 ? "update" : fmt::format("update {}", i);
    }
    return checked_.stage(id);
  }

  static std::string state_text(const Scan& scan, TensorId tensor) {
    if (scan.state.size() == 1) return "state";
    const auto at = std::find(scan.state.begin(), scan.state.end(), tensor);
    return fmt::format("state {}", at - scan.state.begin());
  }

  void check_scatter(StageId id) {
    for (const TensorId tensor : facts_.stage_reads[id]) {
      const int cell = facts_.cell_of[tensor.stage];
      if (cell == kNoOwner) continue;
      if (cell < static_cast<int>(id)) fail_after(id, cell);
      fail(ErrorKind::Unsupported, "SCAN_CELL",
           "scatter {} reads {}, a part of the cell of scan {}; a scatter inside a scan is not "
           "supported",
           checked_.stage(id), checked_.tensor(tensor), scan_name(cell));
    }
  }

  /// What a scan starts from is there before its first step.
  void refuse_init(StageId id, StageId cell) const {
    const auto& scan = std::get<Scan>(definition_.stages[cell]);
    for (const TensorId init : scan.init) {
      if (init.stage != id) continue;
      fail(
          ErrorKind::InvalidArgument, "SCAN_CELL",
          "the init of scan {} is {}, which reads its state; the state begins with what init gives",
          checked_.stage(cell), checked_.tensor(init));
    }
  }

  void check_scan(StageId id, const Scan& scan) {
    for (const TensorId init : scan.init) {
      const int cell = facts_.cell_of[init.stage];
      if (cell == kNoOwner) continue;
      fail(ErrorKind::Unsupported, "SCAN_CELL",
           "scan {} starts from {}, a part of the cell of scan {}; a scan inside a scan is not "
           "supported",
           checked_.stage(id), checked_.tensor(init), scan_name(cell));
    }
  }

  void check_parameter(TensorId parameter) {
    const int cell = facts_.cell_of[parameter.stage];
    if (cell == kNoOwner) return;
    const bool state = facts_.state_of[parameter.stage] != kNoOwner;
    fail(ErrorKind::InvalidArgument, "SCAN_CELL",
         "{} is {} of scan {} and cannot be an argument; take {} instead",
         checked_.tensor(parameter), state ? "the state" : "a part of the cell", scan_name(cell),
         scan_name(cell));
  }

  const std::string& scan_name(int scan) const {
    return checked_.stage(static_cast<StageId>(scan));
  }

  Checked& checked_;
  const Definition& definition_;
  Facts& facts_;
  std::vector<int> time_;  // by stage: its dimension that is time
  std::vector<bool> seen_;
  std::vector<ExprId> touched_;
};

}  // namespace

void check_cells(Checked& checked) { CellChecker(checked).check(); }

}  // namespace kiln::language

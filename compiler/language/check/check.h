#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/language/kernel.h"
#include "runtime/core/error.h"

// What decode() asks of a definition. Not for other parts of the compiler.
namespace kiln::language {

constexpr int kNoOwner = -1;

/// What the checks find out about a definition, for each other.
struct Facts {
  /// By expression. Nesting, nodes when shared parts are spelled out, the last axis used (or -1),
  /// and what stands somewhere inside.
  struct Expr {
    int depth = 1;
    int64_t nodes = 1;
    int64_t last_axis = -1;
    bool has_read = false;
    bool has_reduction = false;
    bool has_parameter = false;
  };
  std::vector<Expr> expressions;
  std::vector<int> axis_owner;                     // stage, or kNoOwner
  std::vector<std::vector<TensorId>> stage_reads;  // each tensor once
  std::vector<int> state_of;  // by stage: the scan whose state it is, or kNoOwner
  std::vector<int> cell_of;   // by stage: the scan it is a part of, or kNoOwner
};

/// A kernel in the making.
struct Checked {
  Kernel kernel;
  Facts facts;
  const Limits& limits;

  const Definition& definition() const { return kernel.definition; }
  const std::string& stage(StageId id) const { return kernel.names.stages[id]; }
  const std::string& axis(AxisId id) const { return kernel.names.axes[id]; }
  /// What a reduction is called: "sum", or the name of a reducer.
  std::string_view reducer(const Reduction& reduction) const;
  std::string tensor(TensorId id) const { return kernel.names.tensor_name(kernel.definition, id); }
  SourceLocation location(StageId id) const;
};

/// Runs `body`; an Error that leaves it says where the user wrote the stage.
template <typename Body>
void at_stage(const Checked& checked, StageId stage, Body&& body) {
  try {
    body();
  } catch (Error& error) {
    error.set_location(checked.location(stage));
    throw;
  }
}

/// ResourceExhausted LIMIT: "{what} has {value} {unit}; the limit is {limit}".
void check_limit(std::string_view what, std::string_view unit, int64_t value, int64_t limit);

/// What the expressions of reducers use. check_reducers.cc
void check_reducers(Checked& checked);

/// Each axis belongs to one stage; bounds and shapes are what they may be. check_axes.cc
void check_axes(Checked& checked);

/// What the bodies of the stages use, and where reductions stand. check_stages.cc
void check_stages(Checked& checked);

/// Shapes, types and time axes of scans, then their cells. check_scans.cc
void check_scans(Checked& checked);

/// Which stages make up the cell of a scan, and when they read its state. check_cells.cc
void check_cells(Checked& checked);

/// Arguments: none twice, an output, every placeholder that is read. check_parameters.cc
void check_parameters(Checked& checked);

}  // namespace kiln::language

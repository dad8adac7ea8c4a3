// Steps that change no loops but say how they run and where values lie, and when all steps are
// taken, whether the loops and the memory that they are about are there.
//   double_buffer(B)  of B at the root  ->  refused: no iterations take turns with it
#include <algorithm>

#include "compiler/ir/swizzle.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

/// What is computed straight into the memory of another stage, or of an argument.
void require_own_memory(const StepContext& context, std::string_view verb) {
  const StageGraph& graph = context.graph;
  const Stage& stage = context.record();
  const auto refuse = [&](const std::string& owner) {
    fail(ErrorKind::InvalidArgument, "FOREIGN_MEMORY",
         "cannot {} {}: it is computed straight into the memory of {}; {} a cache_write of it",
         verb, stage.name, owner, verb);
  };
  if (stage.role.is_init) refuse(graph[stage.role.init_of].name);
  if (stage.role.is_update) refuse(graph[static_cast<StageId>(stage.role.cell_of)].name);
  if (stage.role.base_of >= 0) refuse(graph[static_cast<StageId>(stage.role.base_of)].name);
}

/// The steps as check_hints() names them.
class CheckHints {
 public:
  CheckHints(StageGraph& graph, const language::Schedule& schedule)
      : graph_(graph), schedule_(schedule) {}

  void operator()() {
    for (StageId id = 0; id < graph_.stages.size(); ++id) {
      if (graph_[id].is_live && graph_[id].memory.doubled_by >= 0) check_doubled(id);
    }
    for (const Prefetch& prefetch : graph_.prefetches) {
      if (!graph_[prefetch.reader].is_live) continue;
      at(prefetch.step,
         fmt::format("prefetch({}, {})", graph_.tensor_name(prefetch.tensor), axis(prefetch.axis)),
         [&] { check(prefetch); });
    }
    for (const Pipeline& pipeline : graph_.pipelines) {
      if (!graph_[pipeline.stage].is_live) continue;
      at(pipeline.step,
         fmt::format("software_pipeline({}, stages={})", axis(pipeline.axis), pipeline.stages),
         [&] { check(pipeline); });
    }
    for (int i = 0; i < static_cast<int>(schedule_.steps.size()); ++i) {
      const language::Step& step = schedule_.steps[static_cast<size_t>(i)];
      if (step.kind != StepKind::EnvThreads) continue;
      const StageId scan = graph_.stage_of_id[step.stage];
      if (!graph_[scan].is_live) continue;
      at(i, fmt::format("env_threads({})", graph_[scan].name), [&] { check_env_threads(scan); });
    }
    // A stage that no output needs has no loops.
    std::erase_if(graph_.prefetches,
                  [&](const Prefetch& prefetch) { return !graph_[prefetch.reader].is_live; });
  }

 private:
  const std::string& axis(AxisId id) const { return graph_.axes[id].name; }

  template <typename Body>
  void at(int step, const std::string& text, Body&& body) const {
    at_step(graph_, schedule_.steps[static_cast<size_t>(step)], step, text,
            std::forward<Body>(body));
  }

  void check_doubled(StageId id) const {
    const Stage& stage = graph_[id];
    at(stage.memory.doubled_by, fmt::format("double_buffer({})", stage.name), [&] {
      if (stage.attach.kind == Attach::Kind::At) return;
      fail(ErrorKind::InvalidArgument, "DOUBLE_BUFFER",
           "cannot double {}: it is computed {}, and no iterations take turns with it; compute_at "
           "it inside a loop of what reads it",
           stage.name, stage.attach.kind == Attach::Kind::Inline ? "inline" : "once");
    });
  }

  void check(const Prefetch& prefetch) const {
    const Stage& reader = graph_[prefetch.reader];
    const std::string tensor = graph_.tensor_name(prefetch.tensor);
    const auto refuse = [&](const std::string& why) {
      fail(ErrorKind::InvalidArgument, "PREFETCH", "cannot prefetch {} in {} of {}: {}", tensor,
           axis(prefetch.axis), reader.name, why);
    };
    const Stage& source = graph_[prefetch.tensor.stage];
    if (source.attach.kind == Attach::Kind::Inline) refuse(tensor + " is inline, in no memory");
    if (reader.attach.kind == Attach::Kind::Inline)
      refuse(reader.name + " is inline, without loops");
    KILN_CHECK(reader.loops.has(prefetch.axis));  // the state lets no step take it away
    if (graph_.axes[prefetch.axis].loop_kind == ir::LoopKind::Vectorized) {
      refuse("its iterations are lanes of vectors; choose a loop outside of it");
    }
    if (is_computed_inside(prefetch)) {
      refuse(
          fmt::format("{} is computed inside of that loop, for one iteration at a time", tensor));
    }
    bool is_read = false;
    for (const ir::Expr& body : expanded_bodies(graph_, prefetch.reader)) {
      for_each_read(body, [&](const ir::TensorRead& read) {
        is_read = is_read || TensorId{read.stage, read.output} == prefetch.tensor;
      });
    }
    if (!is_read) refuse(fmt::format("{} does not read it", reader.name));
  }

  /// Whether the tensor is computed in the loop that is to run ahead, or further in.
  bool is_computed_inside(const Prefetch& prefetch) const {
    const Attach& attach = graph_[prefetch.tensor.stage].attach;
    if (attach.kind != Attach::Kind::At || attach.stage != prefetch.reader) return false;
    const std::vector<AxisId>& leaves = graph_[prefetch.reader].loops.leaves;
    return std::find(leaves.begin(), leaves.end(), attach.axis) >=
           std::find(leaves.begin(), leaves.end(), prefetch.axis);
  }

  void check(const Pipeline& pipeline) const {
    const Stage& stage = graph_[pipeline.stage];
    const auto refuse = [&](const std::string& why) {
      fail(ErrorKind::InvalidArgument, "SOFTWARE_PIPELINE", "cannot pipeline {} of {}: {}",
           axis(pipeline.axis), stage.name, why);
    };
    KILN_CHECK(stage.loops.has(pipeline.axis));  // the state lets no step take it away
    if (graph_.axes[pipeline.axis].loop_kind != ir::LoopKind::Serial) {
      refuse("its iterations do not run one after the other");
    }
    const bool has_producer = std::ranges::any_of(graph_.stages, [&](const Stage& other) {
      return other.is_live && other.attach.kind == Attach::Kind::At &&
             other.attach.stage == pipeline.stage && other.attach.axis == pipeline.axis;
    });
    if (!has_producer) {
      refuse("nothing is computed at it that could run ahead; compute_at a stage there");
    }
  }

  void check_env_threads(StageId scan) const {
    for (const ir::ThreadAxis thread : graph_[scan].as_scan.env_threads) {
      const bool is_bound = std::ranges::any_of(graph_.stages, [&](const Stage& stage) {
        const bool is_own = stage.role.cell_of == static_cast<int>(scan) ||
                            (stage.role.is_init && stage.role.init_of == scan);
        return is_own && std::ranges::any_of(stage.loops.leaves, [&](AxisId leaf) {
                 return graph_.axes[leaf].thread == thread;
               });
      });
      if (is_bound) continue;
      fail(ErrorKind::InvalidArgument, "ENV_THREADS",
           "no axis in {} is bound to {}; bind one of its update to it", graph_[scan].name,
           ir::name_of(thread));
    }
  }

  StageGraph& graph_;
  const language::Schedule& schedule_;
};

}  // namespace

template <>
void apply<StepKind::StorageAlign>(const StepContext& context) {
  require_own_memory(context, "align");
  Stage& stage = context.record();
  const auto place = std::find(stage.data.begin(), stage.data.end(), context.axes[0]);
  KILN_CHECK(place != stage.data.end());
  const auto dimension = static_cast<size_t>(place - stage.data.begin());
  const int64_t factor = context.step.factors[0];
  if (dimension + 1 == stage.data.size() && 1 % factor != context.step.value) {
    fail(ErrorKind::Unsupported, "STORAGE_ALIGN",
         "cannot align {}: the elements of {} along its last dimension lie side by side; align a "
         "dimension before it",
         context.axis(0).name, stage.name);
  }
  std::erase_if(stage.memory.alignments,
                [&](const Alignment& other) { return other.dimension == dimension; });
  stage.memory.alignments.push_back({dimension, factor, context.step.value});
}

template <>
void apply<StepKind::StorageSwizzle>(const StepContext& context) {
  require_own_memory(context, "swizzle");
  Stage& stage = context.record();
  const int64_t every = context.step.value;
  for (const DType type : stage.types) {
    if (ir::may_swizzle(type, every)) continue;
    fail(
        ErrorKind::InvalidArgument, "STORAGE_SWIZZLE",
        "storage_swizzle({}, every={}): 16 bytes change places among 128, which are {} elements of "
        "{}, so `every` must be at least that",
        stage.name, every, ir::kBanks * ir::kBankBytes / size_of(type), type);
  }
  stage.memory.swizzle = every;
}

template <>
void apply<StepKind::TransformLayout>(const StepContext& context) {
  require_own_memory(context, "transform");
  const std::vector<int64_t>& steps = context.step.factors;
  Stage& stage = context.record();
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto place = std::find(stage.data.begin(), stage.data.end(), context.axes[i]);
    KILN_CHECK(place != stage.data.end());
    LayoutDimension made{.dimension = static_cast<size_t>(place - stage.data.begin()),
                         .step = steps[i]};
    for (size_t other = 0; other < steps.size(); ++other) {
      if (context.axes[other] != context.axes[i] || steps[other] <= steps[i]) continue;
      const int64_t count = steps[other] / steps[i];
      made.count = made.count == 0 ? count : std::min(made.count, count);
    }
    stage.memory.layout.push_back(made);
  }
}

template <>
void apply<StepKind::DoubleBuffer>(const StepContext& context) {
  require_own_memory(context, "double");
  context.record().memory.doubled_by = context.position;
}

template <>
void apply<StepKind::RollingBuffer>(const StepContext& context) {
  require_own_memory(context, "roll");
  context.record().memory.rolled_by = context.position;
}

template <>
void apply<StepKind::Tensorize>(const StepContext& context) {
  Axis& axis = context.axis(0);
  KILN_CHECK(axis.annotated_by < 0);
  axis.annotated_by = context.position;
  axis.intrinsic = language::find_intrinsic(context.step.tag);
  KILN_CHECK(axis.intrinsic.has_value());
}

template <>
void apply<StepKind::Pragma>(const StepContext& context) {
  const std::optional<language::PragmaKind> kind = language::find_pragma(context.step.tag);
  KILN_CHECK(kind.has_value());
  Axis& axis = context.axis(0);
  switch (*kind) {
    case language::PragmaKind::AutoUnrollMaxStep:
      axis.unrolled_statements = context.step.value;
      return;
    case language::PragmaKind::UnrollExplicit: axis.keeps_loops = context.step.value == 0; return;
    case language::PragmaKind::ScanInParts:
      context.record().as_scan.steps_in_part = context.step.value;
      context.record().as_scan.parted_by = context.position;
      return;
    default: break;
  }
  if (language::is_of_tiles(*kind)) return;  // code made of tiles has no loops of the graph
  const language::PragmaRow& row = language::row_of(*kind);
  context.graph.notes.push_back(
      fmt::format("pragma {} of {} has nothing to do: {}", row.spelling, axis.name, row.doc));
}

template <>
void apply<StepKind::Prefetch>(const StepContext& context) {
  const language::Step& step = context.step;
  context.graph.prefetches.push_back({.tensor = {step.stage, step.output},
                                      .reader = context.graph.axes[step.at_axis].stage,
                                      .axis = step.at_axis,
                                      .ahead = step.value,
                                      .step = context.position});
}

template <>
void apply<StepKind::EnvThreads>(const StepContext& context) {
  Stage& scan = context.record();
  scan.as_scan.env_threads.clear();
  for (const std::string& tag : context.step.tags) {
    const std::optional<ir::ThreadAxis> thread = ir::find_thread_axis(tag);
    KILN_CHECK(thread.has_value());
    scan.as_scan.env_threads.push_back(*thread);
  }
}

template <>
void apply<StepKind::SoftwarePipeline>(const StepContext& context) {
  context.graph.pipelines.push_back({.stage = context.stage,
                                     .axis = context.axes[0],
                                     .stages = context.step.value,
                                     .step = context.position});
}

void check_hints(StageGraph& graph, const language::Schedule& schedule) {
  CheckHints(graph, schedule)();
}

}  // namespace kiln::schedule

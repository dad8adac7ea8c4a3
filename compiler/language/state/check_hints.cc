// The steps that change no loops but say how they run and where values lie: numbers in their
// ranges, known names, and stages that have memory of their own.
//   storage_align(B.i, factor=0, offset=1)  ->  refused: the factor must be at least 1
#include "compiler/language/state/check_hints.h"

#include <algorithm>
#include <bit>

#include <fmt/ranges.h>

#include "compiler/language/state/check_step.h"
#include "compiler/language/state/refuse.h"
#include "compiler/language/state/step_text.h"
#include "compiler/language/suggest.h"
#include "compiler/language/tables/hints.h"

namespace kiln::language {
namespace {

using Kind = StageRow::Kind;

constexpr int64_t kLargestFactor = int64_t{1} << 20;
constexpr int64_t kFarthestPrefetch = int64_t{1} << 20;
constexpr int64_t kMostPipelineStages = 16;

class CheckHint {
 public:
  CheckHint(const Step& step, const StateTables& tables)
      : step_(step), tables_(tables), stage_(tables.stages[step.stage]) {}

  void operator()() const {
    switch (step_.kind) {
      case StepKind::StorageAlign: return check_storage_align();
      case StepKind::StorageSwizzle: return check_storage_swizzle();
      case StepKind::DoubleBuffer: return check_double_buffer();
      case StepKind::RollingBuffer: return check_rolling_buffer();
      case StepKind::Tensorize: return check_tensorize();
      case StepKind::Pragma: return check_pragma();
      case StepKind::Prefetch: return check_prefetch();
      case StepKind::EnvThreads: return check_env_threads();
      case StepKind::SoftwarePipeline: return check_software_pipeline();
      default: return;
    }
  }

 private:
  void check_storage_align() const {
    refuse_foreign_memory(step_, tables_, "STORAGE_ALIGN", "align");
    require_dimension(step_, tables_, "STORAGE_ALIGN", step_.axes[0]);
    if (tables_.has_step(StepKind::TransformLayout, step_.stage)) {
      refuse("STORAGE_ALIGN",
             "{} has a layout already, whose dimensions are not those of the stage; leave out "
             "storage_align or transform_layout",
             stage_.name);
    }
    const int64_t factor = step_.factors[0];
    if (factor > kLargestFactor) {
      refuse("STORAGE_ALIGN", "{}: the factor must be at most {}", text_of(step_, tables_),
             kLargestFactor);
    }
    if (step_.value < 0 || step_.value >= factor) {
      refuse("STORAGE_ALIGN", "{}: the offset is what is left over of the factor, so it must be {}",
             text_of(step_, tables_), factor == 1 ? "0" : fmt::format("from 0 to {}", factor - 1));
    }
  }

  void check_storage_swizzle() const {
    refuse_foreign_memory(step_, tables_, "STORAGE_SWIZZLE", "swizzle");
    const int64_t every = step_.value;
    if (every < 1 || every > kLargestFactor || (every & (every - 1)) != 0) {
      refuse("STORAGE_SWIZZLE",
             "storage_swizzle({}) takes a power of two of elements, at most {}, but got {}",
             stage_.name, kLargestFactor, every);
    }
  }

  void check_double_buffer() const {
    refuse_foreign_memory(step_, tables_, "DOUBLE_BUFFER", "double");
    refuse_two_of("DOUBLE_BUFFER", {StepKind::RollingBuffer});
  }

  void check_rolling_buffer() const {
    refuse_foreign_memory(step_, tables_, "ROLLING_BUFFER", "roll");
    refuse_two_of("ROLLING_BUFFER", {StepKind::DoubleBuffer, StepKind::TransformLayout});
  }

  /// Steps that lay out the memory of a stage in ways that do not go together.
  void refuse_two_of(std::string_view reason, std::initializer_list<StepKind> others) const {
    for (const StepKind other : others) {
      if (!tables_.has_step(other, step_.stage)) continue;
      refuse(reason, "{} has a step {} already; leave out one of {} and {}", stage_.name,
             row_of(other).spelling, row_of(other).spelling, row_of(step_.kind).spelling);
    }
  }

  void check_tensorize() const {
    const std::vector<std::string_view> known = spellings_of(intrinsic_table());
    if (step_.tag.empty()) {
      refuse("INTRINSIC", "{} names no intrinsic; known: {}", text_of(step_, tables_),
             fmt::join(known, ", "));
    }
    if (!find_intrinsic(step_.tag)) {
      const std::string written = step_.tag.substr(0, 64);
      refuse("INTRINSIC", "unknown intrinsic {}{}", written, suggestion(written, known));
    }
    const AxisRow& row = tables_.axes[step_.axes[0]];
    if (row.kind == AxisKind::Reduce) {
      refuse("TENSORIZE",
             "axis {} of {} is a reduction axis; tensorize the outermost data axis of the tile, "
             "inside which the reduction runs",
             row.name, stage_.name);
    }
  }

  void check_pragma() const {
    const std::vector<std::string_view> known = spellings_of(pragma_table());
    if (step_.tag.empty()) {
      refuse("PRAGMA", "{} names no pragma; known: {}", text_of(step_, tables_),
             fmt::join(known, ", "));
    }
    const std::optional<PragmaKind> kind = find_pragma(step_.tag);
    if (!kind) {
      const std::string written = step_.tag.substr(0, 64);
      const std::string_view near = nearest(written, known);
      refuse("PRAGMA", "unknown pragma {}{}; known: {}", written,
             near.empty() ? "" : fmt::format("; did you mean {}", near), fmt::join(known, ", "));
    }
    const PragmaRow& pragma = row_of(*kind);
    if (pragma.use == PragmaUse::Refused) {
      refuse("PRAGMA", "pragma {} is not taken: {}", pragma.spelling, pragma.doc);
    }
    if (pragma.most >= 0 && (step_.value < 0 || step_.value > pragma.most)) {
      refuse("PRAGMA", "pragma {} takes a value from 0 to {}, but got {}", pragma.spelling,
             pragma.most, step_.value);
    }
    if (*kind == PragmaKind::ScanInParts) check_scan_in_parts();
    const bool may_be_any = *kind == PragmaKind::TileWarps && step_.value == 0;
    if (is_of_tiles(*kind) && !may_be_any && !std::has_single_bit(uint64_t(step_.value))) {
      refuse("PRAGMA", "pragma {} takes a power of two, but got {}", pragma.spelling, step_.value);
    }
    constexpr int64_t kFewest = 16;  // what a product of tiles has on each side
    const bool is_of_attention =
        *kind == PragmaKind::AttentionQueries || *kind == PragmaKind::AttentionKeys;
    if (is_of_attention && step_.value < kFewest) {
      refuse("PRAGMA", "pragma {} takes {} or more, but got {}", pragma.spelling, kFewest,
             step_.value);
    }
  }

  void check_scan_in_parts() const {
    const AxisRow& axis = tables_.axes[step_.axes[0]];
    if (stage_.kind != Kind::Scan) {
      refuse("PRAGMA",
             "{} is no time of a scan, whose steps alone run in parts; leave out pragma "
             "scan_in_parts of it",
             axis.name);
    }
    if (step_.axes[0] != stage_.time) {
      refuse("PRAGMA",
             "{} is a part of the time of {} already; leave out its split or pragma "
             "scan_in_parts",
             axis.name, stage_.name);
    }
    if (step_.value < 2) {
      refuse("PRAGMA", "pragma scan_in_parts takes the steps of a part, 2 or more, but got {}",
             step_.value);
    }
  }

  void check_prefetch() const {
    if (step_.at_stage == step_.stage) {
      refuse("PREFETCH", "{} cannot prefetch itself", stage_.name);
    }
    const StageRow& reader = tables_.stages[step_.at_stage];
    if (reader.kind == Kind::Placeholder || reader.kind == Kind::Scan) {
      refuse("PREFETCH",
             "{} is a {} and reads nothing itself; prefetch {} for a stage that reads it",
             reader.name, reader.kind == Kind::Scan ? "scan" : "placeholder",
             stage_.tensors[step_.output]);
    }
    if (step_.value < 0 || step_.value > kFarthestPrefetch) {
      refuse("PREFETCH", "{}: the offset must be from 0 to {} iterations", text_of(step_, tables_),
             kFarthestPrefetch);
    }
    if (tables_.has_step(StepKind::TransformLayout, step_.stage)) {
      refuse("PREFETCH",
             "{} has a layout of its own, in which neighbours do not lie side by side; leave out "
             "prefetch or transform_layout",
             stage_.name);
    }
    check_place(step_, tables_, "prefetch " + stage_.tensors[step_.output]);
  }

  void check_env_threads() const {
    if (stage_.kind != Kind::Scan) {
      refuse("ENV_THREADS", "{} is no scan; bind its axes to threads instead", stage_.name);
    }
    if (step_.tags.empty()) {
      refuse("ENV_THREADS", "env_threads of {} names no thread axis", stage_.name);
    }
    const auto tags = thread_tags();
    for (size_t i = 0; i < step_.tags.size(); ++i) {
      const std::string& tag = step_.tags[i];
      const bool is_known = std::find(tags.begin(), tags.end(), tag) != tags.end();
      if (!is_known || tag == "vthread") {
        refuse("THREAD_AXIS", "unknown thread axis {}; known: {}", tag.substr(0, 64),
               fmt::join(tags.first(tags.size() - 1), ", "));
      }
      const auto end = step_.tags.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(step_.tags.begin(), end, tag) != end) {
        refuse("ENV_THREADS", "env_threads of {} names {} twice", stage_.name, tag);
      }
    }
  }

  void check_software_pipeline() const {
    if (step_.value < 2 || step_.value > kMostPipelineStages) {
      refuse("SOFTWARE_PIPELINE", "software_pipeline({}) takes 2 to {} stages, but got {}",
             tables_.axes[step_.axes[0]].name, kMostPipelineStages, step_.value);
    }
  }

  const Step& step_;
  const StateTables& tables_;
  const StageRow& stage_;
};

}  // namespace

void refuse_foreign_memory(const Step& step, const StateTables& tables, std::string_view reason,
                           std::string_view verb) {
  const StageRow& stage = tables.stages[step.stage];
  if (stage.is_output) {
    refuse(reason, "{} is an output, whose memory is the caller's; {} a cache_write of it",
           stage.name, verb);
  }
  if (stage.kind != Kind::Compute) {
    refuse(reason, "{} is a {}; {} a stage that it reads, or a cache_read of it", stage.name,
           stage.kind == Kind::Scan ? "scan" : "scatter", verb);
  }
}

void require_dimension(const Step& step, const StateTables& tables, std::string_view reason,
                       AxisId axis) {
  const StageRow& stage = tables.stages[step.stage];
  if (std::ranges::find(stage.data, axis) != stage.data.end()) return;
  const std::string dimensions =
      stage.data.empty() ? "none" : fmt::format("{}", fmt::join(tables.names_of(stage.data), ", "));
  refuse(reason, "{} is a loop of {}, but no dimension of it; its dimensions are {}",
         tables.axes[axis].name, stage.name, dimensions);
}

void check_hint(const Step& step, const StateTables& tables) { CheckHint(step, tables)(); }

}  // namespace kiln::language

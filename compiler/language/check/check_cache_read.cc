#include "compiler/language/check/check_cache_read.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

using Kind = AxisTable::Stage::Kind;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::InvalidArgument, "CACHE_READ", format, std::forward<Args>(args)...);
}

/// A copy in the order of loops has what one stage reads in them.
void check_layout(const Step& step, const AxisTable& table, const std::string& tensor) {
  if (step.readers.size() > 1) {
    refuse("the layout of a copy of {} is the order of one reader's loops, but it has {} readers",
           tensor, step.readers.size());
  }
  if (table.stages[step.stage].cell_of >= 0) {
    refuse("{} is computed step by step in a scan; a copy of it has no layout of its own", tensor);
  }
}

}  // namespace

void check_scope(const Step& step) {
  const auto scopes = memory_scopes();
  if (std::find(scopes.begin(), scopes.end(), step.tag) != scopes.end()) return;
  fail(ErrorKind::InvalidArgument, "MEMORY_SCOPE", "unknown memory scope {}; known: {}",
       step.tag.substr(0, 64), fmt::join(scopes, ", "));
}

void check_cache_read(const Step& step, const AxisTable& table) {
  const bool is_padded = step.kind == StepKind::CachePadded;
  const std::string_view spelling = row_of(step.kind).spelling;
  if (!is_padded) check_scope(step);
  const std::string& tensor = table.stages[step.stage].tensors[step.output];
  if (step.readers.empty()) {
    refuse("{} of {} names no stage that reads the copy", spelling, tensor);
  }
  if (is_padded && step.readers.size() > 1) {
    refuse("what {} is padded with is one reader's to say, but {} names {} readers", tensor,
           spelling, step.readers.size());
  }
  for (size_t i = 0; i < step.readers.size(); ++i) {
    const StageId reader = step.readers[i];
    const Kind kind = table.stages[reader].kind;
    if (kind == Kind::Placeholder || kind == Kind::Scan || reader == step.stage) {
      refuse("{} does not read {}{}", table.name_of(reader), tensor,
             kind == Kind::Placeholder ? ": it is a placeholder" : "");
    }
    const auto end = step.readers.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(step.readers.begin(), end, reader) != end) {
      refuse("{} of {} names the reader {} twice", spelling, tensor, table.name_of(reader));
    }
  }
  if (!step.axes.empty()) check_layout(step, table, tensor);
}

}  // namespace kiln::language

// Plans are cache entries as kernels are: checksum and length are looked at, the form is compared
// and not its hash alone, and the least recently used go. Two builds never share one: how nodes are
// fused may change from one to the next.
#include "server/programs/plan_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/executable_id.h"
#include "compiler/language/wire/canonical.h"
#include "runtime/core/error.h"

namespace kiln::server {

namespace {

// Raised when what is stored of a plan changes its meaning.
constexpr std::string_view kFormVersion = "kiln plan 1";

/// Each part with its length before it, so that no two lists of parts look alike.
void append(std::string& form, std::string_view part) {
  form += fmt::format("{}:", part.size());
  form += part;
}

std::string arch_of(const ProgramEntry& program, const CompileSetting& setting) {
  const TargetKind kind = target_of(program);
  const std::string& arch = program.target.arch();
  return arch.empty() && traits_of(kind).is_compiled ? setting.arch(kind) : arch;
}

}  // namespace

std::string plan_form(const ProgramEntry& program, const program::GivenTypes& given,
                      const CompileSetting& setting) {
  static const std::string planner = executable_id();
  std::string form;
  append(form, kFormVersion);
  append(form, planner);
  append(form, setting.build_id);
  append(form, arch_of(program, setting));
  append(form, program.request);
  for (const auto& [value, type] : given)
    append(form, fmt::format("{}:{}[{}]", value, type.type, fmt::join(type.shape, ",")));
  return form;
}

std::optional<CheckedPlan> PlanStore::find(const std::string& form, const program::Program& program,
                                           const CompileSetting& setting) {
  const std::string key = language::id_of(form);
  for (size_t i = 0; i < levels_.size(); ++i) {
    const std::optional<std::string> bytes = levels_[i]->find(key, form);
    if (!bytes) continue;
    try {
      CheckedPlan plan = unpack_plan(*bytes, program, setting);
      for (size_t nearer = 0; nearer < i; ++nearer)
        levels_[nearer]->put(key, form, *bytes);
      counters_.stored_plans.fetch_add(1);
      return plan;
    } catch (const Error& error) {
      levels_[i]->reject(key, error.message());
    }
  }
  return std::nullopt;
}

void PlanStore::put(const std::string& form, const std::string& packed) {
  const std::string key = language::id_of(form);
  for (CacheLevel* level : levels_)
    level->put(key, form, packed);
}

}  // namespace kiln::server

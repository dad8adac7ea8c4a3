#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
#include "kiln/v1/service.pb.h"
#include "tests/fuzz/guided/refusals.h"
#include "tests/fuzz/guided/targets.h"

namespace kiln::testing {
namespace {

using language::Kernel;
using language::Schedule;
using language::TextKernel;

/// What everyone does with a checked kernel must work, and agree.
void use(const Kernel& kernel) {
  const std::string form = language::canonical_form(kernel.definition);
  const language::CanonicalKernel canonical =
      must_run("canonicalize", [&] { return language::canonicalize(kernel, {}); });
  require(language::canonical_form(canonical.kernel.definition) == form,
          "the canonical kernel has another form");
  const Kernel again = must_run("decode what was encoded", [&] {
    return language::decode(encode(canonical.kernel.definition), encode(canonical.kernel.names));
  });
  require(language::canonical_form(again.definition) == form, "what was encoded has another form");
  const std::string text = language::print_text({kernel, {}});
  const auto read = must_run("parse what was printed",
                             [&] { return language::parse_text(text, "printed.kiln"); });
  require(read.size() == 1 && language::canonical_form(read[0].kernel.definition) == form,
          "what was printed has another form");
}

void use(const Kernel& kernel, const Schedule& schedule) {
  language::ScheduleState(kernel.definition, kernel.names, schedule);
  const std::string form = language::canonical_form(kernel.definition, schedule);
  const language::CanonicalKernel canonical =
      must_run("canonicalize", [&] { return language::canonicalize(kernel, schedule); });
  require(language::canonical_form(canonical.kernel.definition, canonical.schedule) == form,
          "the canonical schedule has another form");
  const std::string text = language::print_text({kernel, {{"cpu", schedule}}});
  must_run("parse what was printed", [&] { return language::parse_text(text, "printed.kiln"); });
}

}  // namespace

void fuzz_kernel(std::string_view input) {
  v1::KernelText wire;
  if (!wire.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  runs_or_refuses([&] {
    const Kernel kernel = language::decode(wire.definition(), wire.source_map());
    use(kernel);
    for (const v1::ScheduleBlock& block : wire.schedules()) {
      runs_or_refuses([&] { use(kernel, language::decode_schedule(block.schedule(), kernel)); });
    }
  });
}

void fuzz_text(std::string_view input) {
  std::string formatted;
  const bool is_syntax =
      runs_or_refuses([&] { formatted = language::format_text(input, "a.kiln"); });
  if (is_syntax) {
    const std::string again = must_run("format what was formatted",
                                       [&] { return language::format_text(formatted, "b.kiln"); });
    require(again == formatted, "what was formatted is formatted otherwise");
  }
  std::vector<TextKernel> kernels;
  if (!runs_or_refuses([&] { kernels = language::parse_text(input, "a.kiln"); })) return;
  require(is_syntax, "what is parsed is not formatted");
  const auto again = must_run("parse what was formatted",
                              [&] { return language::parse_text(formatted, "b.kiln"); });
  require(again.size() == kernels.size(), "what was formatted has other kernels");
  for (size_t i = 0; i < kernels.size(); ++i) {
    require(language::print_text(again[i]) == language::print_text(kernels[i]),
            "what was formatted says something else");
    use(kernels[i].kernel);
    for (const auto& [target, schedule] : kernels[i].schedules)
      use(kernels[i].kernel, schedule);
  }
}

void fuzz_schedule(std::string_view input) {
  constexpr std::string_view kLine = "\n----\n";
  const size_t at = input.find(kLine);
  if (at == std::string_view::npos) return;
  const std::string_view file = input.substr(0, at);
  const std::string_view schedules = input.substr(at + kLine.size());
  std::vector<TextKernel> kernels;
  if (!runs_or_refuses([&] { kernels = language::parse_text(file, "a.kiln"); })) return;
  const Kernel& kernel = kernels[0].kernel;
  language::TargetSchedules parsed;
  runs_or_refuses([&] { parsed = language::parse_schedules(schedules, "a.schedule", kernel); });
  for (const auto& [target, schedule] : parsed) {
    use(kernel, schedule);
    const std::string printed = language::print_schedule(kernel, target, schedule);
    const auto again = must_run("parse the printed schedule", [&] {
      return language::parse_schedules(printed, "printed.schedule", kernel);
    });
    require(
        again.size() == 1 && language::print_schedule(kernel, target, again[0].second) == printed,
        "the printed schedule is read otherwise");
  }
  runs_or_refuses([&] {
    const std::string whole =
        language::apply_schedules(file, "a.kiln", kernel.names.kernel, schedules, "a.schedule");
    must_run("parse what schedules were applied to",
             [&] { return language::parse_text(whole, "applied.kiln"); });
  });
}

}  // namespace kiln::testing

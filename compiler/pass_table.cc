// Runs the table of lower.cc for one target: names its rows, bounds and shows what each leaves, and
// verifies the loops at the end; when they do not hold, each pass runs again with a check behind
// it.
#include "compiler/pass_table.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/code_limits.h"
#include "compiler/ir/verify.h"
#include "compiler/language/suggest.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

class VerifyEach : public LoweringObserver {
 public:
  void after(std::string_view, ir::Kernel& kernel) override { ir::verify(kernel); }
};

}  // namespace

void finish_pass(std::string_view pass, ir::Kernel& kernel, const PassContext& context,
                 LoweringObserver& observer) {
  check_size(kernel, context.options.limits);
  observer.after(pass, kernel);
}

PassTable::PassTable(std::string_view first, std::span<const Pass> table, TargetKind target)
    : first_(first), target_(target) {
  const Serves only = traits_of(target).has_threads ? Serves::Threads : Serves::Cores;
  const auto serves = [&](const Pass& pass) {
    return pass.serves == Serves::All || pass.serves == only;
  };
  for (const Pass& pass : table) {
    if (!serves(pass)) continue;
    const auto is_same = [&](const Pass& other) {
      return serves(other) && other.name == pass.name;
    };
    std::string name(pass.name);
    if (std::ranges::count_if(table, is_same) > 1) {
      const std::span<const Pass> so_far(table.data(), &pass + 1);
      name += fmt::format(":{}", std::ranges::count_if(so_far, is_same));
    }
    rows_.push_back({std::move(name), &pass});
  }
}

std::vector<std::string> PassTable::names() const {
  std::vector<std::string> names = {first_};
  for (const Row& row : rows_)
    names.push_back(row.name);
  return names;
}

std::string PassTable::resolve(std::string_view asked) const {
  if (asked == first_) return first_;
  const auto found = std::find_if(rows_.rbegin(), rows_.rend(), [&](const Row& row) {
    return row.name == asked || row.pass->name == asked;
  });
  if (found != rows_.rend()) return found->name;

  const std::vector<std::string> own = names();
  std::vector<std::string_view> known(own.begin(), own.end());
  for (const Row& row : rows_)
    known.push_back(row.pass->name);
  const std::string_view near = language::nearest(asked, known);
  fail(ErrorKind::InvalidArgument, "PASS", "there is no pass {} for {}; {}", asked,
       name_of(target_),
       near.empty() ? fmt::format("its passes are {}", fmt::join(own, ", "))
                    : fmt::format("did you mean {}", near));
}

ir::Kernel PassTable::run(std::string_view last, ir::Kernel kernel, const PassContext& context,
                          LoweringObserver& observer) const {
  for (const Row& row : rows_) {
    annotate(fmt::format("in pass {}", row.name), [&] {
      kernel = row.pass->run(std::move(kernel), context);
      finish_pass(row.name, kernel, context, observer);
    });
    if (row.name == last) break;
  }
  return kernel;
}

// Verifies the result alone, which takes as long as a pass. Passes are pure, so that the one that
// is to blame is found by running them once more.
ir::Kernel PassTable::run_until(std::string_view last, const ir::Kernel& kernel,
                                const PassContext& context, LoweringObserver& observer) const {
  ir::Kernel result = run(last, kernel, context, observer);
  try {
    ir::verify(result);
  } catch (const Error&) {
    ir::verify(kernel);
    VerifyEach each;
    run(last, kernel, context, each);
    throw;
  }
  return result;
}

}  // namespace kiln

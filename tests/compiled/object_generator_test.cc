#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "tests/support/kernels.h"
#include "tests/support/seeds_in_threads.h"

namespace kiln::testing {
namespace {

/// The object of a kernel of tests/kernels, made for a CPU that no other test names.
std::string object_of(const std::string& file, const std::string& name, bool strict) {
  const language::TextKernel text = test_kernel(file, name);
  const Target target{TargetKind::Llvm, "haswell"};
  CompileOptions options;
  options.strict = strict;
  const language::Schedule schedule = choose_schedule(text.kernel, {}, target, options);
  return compile(text.kernel, schedule, target, options).code;
}

struct Source {
  std::string file;
  std::string kernel;
};

std::vector<Source> sources() {
  std::vector<Source> all;
  for (const std::string& file : kernel_files()) {
    for (const language::TextKernel& text : language::parse_text(kernel_file(file), file))
      all.push_back({file, text.kernel.names.kernel});
  }
  return all;
}

TEST(ObjectGenerator, MakesTheSameObjectWhateverItMadeBefore) {
  std::vector<std::string> first;
  for (const Source& source : sources())
    first.push_back(object_of(source.file, source.kernel, false));
  for (size_t i = sources().size(); i-- > 0;) {
    const Source source = sources()[i];
    EXPECT_EQ(object_of(source.file, source.kernel, false), first[i]) << source.kernel;
  }
}

TEST(ObjectGenerator, KeepsStrictAndOtherCodeApart) {
  const std::string strict = object_of("matmul", "matmul", true);
  const std::string fused = object_of("matmul", "matmul", false);
  EXPECT_NE(strict, fused);
  EXPECT_EQ(object_of("matmul", "matmul", true), strict);
  EXPECT_EQ(object_of("matmul", "matmul", false), fused);
}

TEST(ObjectGenerator, MakesTheSameObjectsInSeveralThreads) {
  std::vector<std::string> alone;
  const std::vector<Source> all = sources();
  for (const Source& source : all)
    alone.push_back(object_of(source.file, source.kernel, false));
  for_each_seed(0, 2 * all.size(), [&](uint64_t seed) {
    const size_t i = seed % all.size();
    EXPECT_EQ(object_of(all[i].file, all[i].kernel, false), alone[i]) << all[i].kernel;
  });
}

}  // namespace
}  // namespace kiln::testing

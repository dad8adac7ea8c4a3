#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/fuzz/guided/refusals.h"
#include "tests/fuzz/guided/targets.h"

namespace kiln::testing {
namespace {

/// Inputs that showed a mistake once: each is done or refused now.
TEST(Corpus, IsDoneOrRefused) {
  int inputs = 0;
  for (const FuzzTarget& target : fuzz_targets()) {
    const std::filesystem::path folder = std::filesystem::path(KILN_CORPUS) / target.name;
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ostringstream bytes;
      bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      SCOPED_TRACE(entry.path().string());
      EXPECT_NO_THROW(target.run(bytes.str()));
      ++inputs;
    }
  }
  EXPECT_GT(inputs, 0);
}

/// What leaves a target, and ends the fuzzer, is a mistake of ours.
TEST(Corpus, TellsMistakesFromRefusals) {
  EXPECT_FALSE(runs_or_refuses([] { fail(ErrorKind::InvalidArgument, "SYNTAX", "no kernel"); }));
  EXPECT_THROW(runs_or_refuses([] { KILN_CHECK(1 > 2); }), std::logic_error);
  EXPECT_THROW(must_run("again", [] { fail(ErrorKind::Unsupported, "STEP", "no"); }),
               std::logic_error);
  EXPECT_THROW(require(false, "two results differ"), std::logic_error);
}

}  // namespace
}  // namespace kiln::testing

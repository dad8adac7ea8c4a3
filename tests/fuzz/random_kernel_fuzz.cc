#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/random_kernel.h"
#include "tests/support/random_schedule.h"
#include "tests/support/tensors.h"

namespace kiln::language {
namespace {

using testing::Random;

std::vector<int64_t> sizes_of(const Kernel& kernel, const testing::RandomKernel& drawn) {
  std::vector<int64_t> sizes;
  for (const std::string& name : kernel.names.variables) {
    const auto found = drawn.sizes.find(name);
    sizes.push_back(found == drawn.sizes.end() ? 1 : found->second);
  }
  return sizes;
}

/// The canonical form, and what is read back from the printed text, compute the same bytes.
TEST(RandomKernels, MeanTheSameInEveryForm) {
  const uint64_t first = testing::fuzz_seed();
  const int rounds = testing::fuzz_rounds(2'000);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    const testing::RandomKernel drawn = testing::random_kernel(random);
    if (drawn.may_stop) continue;  // no values to compare
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed) + " KILN_FUZZ_ROUNDS=1\n" +
                 drawn.text);
    const TextKernel text = testing::kernel_of(drawn.text);
    const Schedule schedule = testing::random_schedule(text.kernel.definition, random);
    EXPECT_TRUE(testing::runs_or_is_refused(
        [&] {
          const std::vector<int64_t> sizes = sizes_of(text.kernel, drawn);
          const std::vector<HostTensor> inputs = testing::random_inputs(drawn, random);
          const auto expected = evaluate(text.kernel.definition, text.kernel.names, sizes, inputs);
          const Kernel canonical = canonicalize(text.kernel, {}).kernel;
          const Kernel printed = parse_text(print_text(text), "printed.kiln")[0].kernel;
          EXPECT_EQ(canonical_form(printed.definition), canonical_form(text.kernel.definition));
          for (const Kernel& other : {canonical, printed}) {
            const auto actual =
                evaluate(other.definition, other.names, sizes_of(other, drawn), inputs);
            ASSERT_EQ(actual.size(), expected.size());
            for (size_t i = 0; i < actual.size(); ++i) {
              EXPECT_EQ(actual[i].bytes, expected[i].bytes);
            }
          }
        },
        4 * testing::kSecondsOfACase));  // three evaluations, each of many elements
    testing::runs_or_is_refused([&] {
      const Schedule checked = decode_schedule(encode(schedule), text.kernel);
      const TextKernel again =
          parse_text(print_text({text.kernel, {{"cpu", checked}}}), "printed.kiln")[0];
      EXPECT_EQ(canonical_form(again.kernel.definition, again.schedules[0].second),
                canonical_form(text.kernel.definition, checked));
    });
  }
}

}  // namespace
}  // namespace kiln::language

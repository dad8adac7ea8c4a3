#include <gtest/gtest.h>

#include "compiler/language/axis_table.h"
#include "compiler/language/canonical.h"
#include "compiler/language/decode.h"
#include "compiler/language/text.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/fuzz/mutate_message.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"

namespace kiln::language {
namespace {

using testing::mutate;
using testing::Random;

struct Seed {
  v1::Definition definition;
  v1::SourceMap names;
  v1::Schedule schedule;
};

std::vector<Seed> seeds() {
  std::vector<Seed> result;
  for (const char* file : {"cumsum", "two_stage_scan", "two_state_scan", "fibonacci", "matmul",
                           "softmax", "conv2d", "elementwise"}) {
    for (const TextKernel& kernel : parse_text(testing::kernel_file(file), file)) {
      Seed seed = {encode(kernel.kernel.definition), encode(kernel.kernel.names), {}};
      for (const auto& [target, schedule] : kernel.schedules) {
        seed.schedule = encode(schedule);
      }
      result.push_back(std::move(seed));
    }
  }
  return result;
}

std::string repeat(uint64_t seed) {
  return "to repeat: KILN_FUZZ_SEED=" + std::to_string(seed) + " KILN_FUZZ_ROUNDS=1";
}

/// What everyone does with a checked kernel must work.
void use(const Kernel& kernel) {
  const std::string form = canonical_form(kernel.definition);
  const CanonicalKernel canonical = canonicalize(kernel, {});
  EXPECT_EQ(canonical_form(canonical.kernel.definition), form);
  const Kernel again = decode(encode(canonical.kernel.definition), encode(canonical.kernel.names));
  EXPECT_EQ(canonical_form(again.definition), form);
  const std::string text = print_text({kernel, {}});
  SCOPED_TRACE(text);
  try {
    const std::vector<TextKernel> read = parse_text(text, "printed.kiln");
    EXPECT_EQ(canonical_form(read[0].kernel.definition), form);
  } catch (const Error& error) {
    ADD_FAILURE() << error.message();
  }
}

TEST(DecodeFuzz, RefusesOrUnderstandsMutatedDefinitions) {
  const std::vector<Seed> all = seeds();
  const uint64_t first = testing::fuzz_seed();
  int accepted = 0;
  const int rounds = testing::fuzz_rounds(2'000);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    Seed wire = random.pick(all);
    for (int i = random.between(1, 4); i > 0; --i) {
      mutate(random.chance(0.9) ? static_cast<google::protobuf::Message&>(wire.definition)
                                : wire.names,
             random);
    }
    SCOPED_TRACE(repeat(seed));
    std::optional<Kernel> kernel;
    testing::runs_or_is_refused([&] { kernel = decode(wire.definition, wire.names); });
    if (!kernel) continue;
    ++accepted;
    EXPECT_TRUE(testing::runs_or_is_refused([&] {
      try {
        use(*kernel);
      } catch (const Error& error) {
        ADD_FAILURE() << error.message();
      }
    }));
  }
  if (rounds >= 1'000) {
    EXPECT_GT(accepted, rounds / 50) << "the mutations are too coarse to reach the checks";
  }
  std::printf("%d of %d accepted\n", accepted, rounds);
}

TEST(DecodeFuzz, RefusesOrUnderstandsMutatedSchedules) {
  const std::vector<Seed> all = seeds();
  const uint64_t first = testing::fuzz_seed();
  int accepted = 0;
  const int rounds = testing::fuzz_rounds(2'000);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    Seed wire = random.pick(all);
    const Kernel kernel = decode(wire.definition, wire.names);
    for (int i = random.between(1, 5); i > 0; --i) {
      mutate(wire.schedule, random);
    }
    SCOPED_TRACE(repeat(seed));
    accepted += testing::runs_or_is_refused([&] {
      const Schedule schedule = decode_schedule(wire.schedule, kernel);
      const AxisTable table = axis_table(kernel.definition, kernel.names, schedule);
      EXPECT_GE(table.rows.size(), kernel.definition.axes.size());
      const std::string form = canonical_form(kernel.definition, schedule);
      const CanonicalKernel canonical = canonicalize(kernel, schedule);
      EXPECT_EQ(canonical_form(canonical.kernel.definition, canonical.schedule), form);
      EXPECT_EQ(parse_text(print_text({kernel, {{"cpu", schedule}}}), "printed.kiln").size(), 1U);
    });
  }
  if (rounds >= 1'000) {
    EXPECT_GT(accepted, rounds / 50) << "the mutations are too coarse to reach the checks";
  }
  std::printf("%d of %d accepted\n", accepted, rounds);
}

}  // namespace
}  // namespace kiln::language

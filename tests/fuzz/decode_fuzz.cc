#include <gtest/gtest.h>

#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
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

/// Repeated numbers, texts, types and messages.
TEST(DecodeFuzz, ChangesFieldsOfEveryKind) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    v1::Definition definition;
    definition.add_reducers()->add_types(v1::DATA_TYPE_FLOAT32);
    definition.mutable_reducers(0)->add_results(0);
    v1::SourceMap names;
    names.add_stages("A");
    for (int changes = 0; changes < 20; ++changes) {
      mutate(definition, random);
      mutate(names, random);
    }
  }
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
      const ScheduleState state(kernel.definition, kernel.names, schedule);
      EXPECT_GE(state.axes().size(), kernel.definition.axes.size());
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

/// As many stages as the limit allows, each reading the one before at two places.
Seed largest_chain() {
  Seed seed;
  v1::Definition& definition = seed.definition;
  const auto add = [&]() -> v1::Expression& { return *definition.add_expressions(); };
  const auto last = [&] { return static_cast<uint32_t>(definition.expressions_size()) - 1; };
  definition.add_variables();
  add().set_variable(0);
  v1::IntegerConstant& zero = *add().mutable_integer();
  zero.set_type(v1::DATA_TYPE_INT64);
  v1::Placeholder& input = *definition.add_stages()->mutable_placeholder();
  input.set_type(v1::DATA_TYPE_FLOAT32);
  input.add_shape(0);
  definition.add_parameters()->set_stage(0);
  const uint32_t stages = static_cast<uint32_t>(Limits().stages);
  for (uint32_t stage = 1; stage < stages; ++stage) {
    v1::Axis& axis = *definition.add_axes();
    axis.set_kind(v1::AXIS_KIND_DATA);
    axis.set_minimum(1);
    axis.set_extent(0);
    add().set_axis(stage - 1);
    const uint32_t index = last();
    uint32_t total = index;
    for (int i = 0; i < 8; ++i) {
      v1::Read& read = *add().mutable_read();
      read.mutable_tensor()->set_stage(stage - 1);
      read.add_indices(index);
      const uint32_t value = last();
      v1::Operation& sum = *add().mutable_operation();
      sum.set_operator_("add");
      sum.add_operands(i == 0 ? value : total);
      sum.add_operands(value);
      total = last();
    }
    v1::Compute& compute = *definition.add_stages()->mutable_compute();
    compute.add_axes(stage - 1);
    compute.add_bodies(total);
  }
  definition.add_parameters()->set_stage(stages - 1);
  return seed;
}

TEST(DecodeFuzz, LargeRequestsAreQuick) {
  const Seed wire = largest_chain();
  std::optional<Kernel> kernel;
  EXPECT_TRUE(testing::runs_or_is_refused([&] { kernel = decode(wire.definition, wire.names); }));
  ASSERT_TRUE(kernel);
  EXPECT_TRUE(testing::runs_or_is_refused([&] { canonicalize(*kernel, {}); }));
  v1::Schedule schedule;
  for (uint32_t i = 0; i < 14'000; ++i) {
    v1::Step& step = *schedule.add_steps();
    step.set_name("split");
    step.set_stage(1 + i % 4'000);
    const uint32_t axes = static_cast<uint32_t>(wire.definition.axes_size());
    step.add_axes(i < 4'000 ? i : axes + 2 * (i - 4'000) + 1);
    step.add_factors(2);
  }
  EXPECT_TRUE(testing::runs_or_is_refused([&] { decode_schedule(schedule, *kernel); }));
}

}  // namespace
}  // namespace kiln::language

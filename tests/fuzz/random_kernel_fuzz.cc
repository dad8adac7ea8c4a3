#include <gtest/gtest.h>

#include "compiler/language/canonical.h"
#include "compiler/language/evaluate.h"
#include "compiler/language/text.h"
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

HostTensor random_tensor(DType type, const std::vector<int64_t>& shape, Random& random) {
  HostTensor tensor = testing::zeros(type, shape);
  const int bytes = size_of(type);
  for (size_t i = 0; i < tensor.bytes.size(); i += static_cast<size_t>(bytes)) {
    const auto value = static_cast<double>(random.between(-8, 8));
    const auto put = [&](auto number) { std::memcpy(&tensor.bytes[i], &number, sizeof number); };
    if (type == DType::Float32) put(static_cast<float>(value) / 4);
    if (type == DType::Float64) put(value / 4);
    if (type == DType::Int32) put(static_cast<int32_t>(value));
    if (type == DType::Int64) put(static_cast<int64_t>(value));
  }
  return tensor;
}

std::vector<HostTensor> inputs_of(const Kernel& kernel, const std::vector<int64_t>& sizes,
                                  Random& random) {
  std::vector<HostTensor> inputs;
  for (const TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter)) continue;
    std::vector<int64_t> shape;
    for (const ExprId extent : kernel.definition.shape_of(parameter)) {
      shape.push_back(evaluate_size(kernel.definition, extent, sizes));
    }
    inputs.push_back(random_tensor(kernel.definition.type_of(parameter), shape, random));
  }
  return inputs;
}

/// The canonical form, and what is read back from the printed text, compute the same bytes.
TEST(RandomKernels, MeanTheSameInEveryForm) {
  const uint64_t first = testing::fuzz_seed();
  const int rounds = testing::fuzz_rounds(2'000);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    const testing::RandomKernel drawn = testing::random_kernel(random);
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed) + " KILN_FUZZ_ROUNDS=1\n" +
                 drawn.text);
    const TextKernel text = testing::kernel_of(drawn.text);
    const Schedule schedule = testing::random_schedule(text.kernel.definition, random);
    EXPECT_TRUE(testing::runs_or_is_refused([&] {
      const std::vector<int64_t> sizes = sizes_of(text.kernel, drawn);
      const std::vector<HostTensor> inputs = inputs_of(text.kernel, sizes, random);
      const auto expected = evaluate(text.kernel.definition, text.kernel.names, sizes, inputs);
      const Kernel canonical = canonicalize(text.kernel, {}).kernel;
      const Kernel printed = parse_text(print_text(text), "printed.kiln")[0].kernel;
      EXPECT_EQ(canonical_form(printed.definition), canonical_form(text.kernel.definition));
      for (const Kernel& other : {canonical, printed}) {
        const auto actual = evaluate(other.definition, other.names, sizes_of(other, drawn), inputs);
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          EXPECT_EQ(actual[i].bytes, expected[i].bytes);
        }
      }
    }));
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

// Fills drawn inputs: whole numbers, any numbers, sorted ones, and the ends of a type with nan and
// infinities among them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/language/evaluate/scalar.h"
#include "tests/support/random_kernel.h"

namespace kiln::testing {
namespace {

using language::Scalar;

Scalar whole_number(const DrawnInput& input, Random& random) {
  const int64_t value = random.between(static_cast<int>(input.low), static_cast<int>(input.high));
  return language::convert(input.tensor.type(), Scalar::of_int(DType::Int64, value));
}

Scalar any_number(const DrawnInput& input, Random& random) {
  const double share = random.between(0, 1'000'000) / 1e6;
  const double value =
      static_cast<double>(input.low) + share * static_cast<double>(input.high - input.low);
  return Scalar::of_float(input.tensor.type(), value);
}

/// Half of them are ordinary.
Scalar wild_number(const DrawnInput& input, Random& random) {
  if (random.chance(0.5)) return whole_number(input, random);
  const DType type = input.tensor.type();
  if (is_float(type)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return Scalar::of_float(
        type, random.pick(std::vector<double>{std::nan(""), kInfinity, -kInfinity, -0.0, 0.0, 1e30,
                                              -1e30}));
  }
  const int64_t top = random.below(2) == 0 ? std::numeric_limits<int64_t>::max()
                                           : std::numeric_limits<int64_t>::min();
  // Cut to the type: its ends, -1 and 0, and what is next to these.
  const auto end = static_cast<uint64_t>(top >> (64 - bits_of(type)));
  return Scalar::of_int(type,
                        static_cast<int64_t>(end + static_cast<uint64_t>(random.between(-1, 1))));
}

Scalar number(const DrawnInput& input, Random& random) {
  switch (input.fill) {
    case DrawnInput::Fill::Real: return any_number(input, random);
    case DrawnInput::Fill::Wild: return wild_number(input, random);
    default: return whole_number(input, random);
  }
}

}  // namespace

std::vector<language::HostTensor> random_inputs(const RandomKernel& kernel, Random& random) {
  std::vector<language::HostTensor> tensors;
  for (const DrawnInput& input : kernel.inputs) {
    std::vector<Scalar> values;
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (const DrawnExtent& extent : input.tensor.shape) {
      shape.push_back(extent.value);
      count *= extent.value;
    }
    for (int64_t i = 0; i < count; ++i)
      values.push_back(number(input, random));
    if (input.fill == DrawnInput::Fill::Sorted) {
      std::ranges::sort(values, {}, &Scalar::integer);
    }
    const DType type = input.tensor.type();
    language::HostTensor tensor{type, shape, {}};
    tensor.bytes.resize(static_cast<size_t>(count * size_of(type)));
    for (int64_t i = 0; i < count; ++i)
      language::write_element(tensor, i, values[static_cast<size_t>(i)]);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace kiln::testing

// Draws inputs by their bits: one exponent, any mantissa. A sum of such floats is another in almost
// every other order, so a candidate that reorders one is found out.
//
//   float32: 0x3F000000 | 23 random bits  ->  0.5 .. 1
#include "server/tuning/made_up_inputs.h"

#include <cstring>
#include <random>

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "server/engine/given_sizes.h"

namespace kiln::server {

namespace {

/// A value in [0.5, 1): the exponent below that of one, any mantissa.
template <typename Bits>
Bits half_to_one(Bits exponent, Bits mantissa, uint64_t random) {
  return static_cast<Bits>(exponent | (static_cast<Bits>(random) & mantissa));
}

uint64_t draw(DType type, uint64_t random) {
  switch (type) {
    case DType::Float64: return half_to_one<uint64_t>(0x3FE0000000000000, 0xFFFFFFFFFFFFF, random);
    case DType::Float32: return half_to_one<uint32_t>(0x3F000000, 0x7FFFFF, random);
    case DType::Float16: return half_to_one<uint16_t>(0x3800, 0x3FF, random);
    case DType::BFloat16: return half_to_one<uint16_t>(0x3F00, 0x7F, random);
    case DType::Float8E4M3FN: return half_to_one<uint8_t>(0x30, 0x7, random);
    case DType::Float8E5M2: return half_to_one<uint8_t>(0x38, 0x3, random);
    case DType::Bool: return random & 1;
    default: return random & 7;
  }
}

std::string contents(DType type, int64_t bytes, std::mt19937_64& random) {
  std::string data(static_cast<size_t>(bytes), '\0');
  const auto width = static_cast<size_t>(size_of(type));
  for (size_t at = 0; at < data.size(); at += width) {
    const uint64_t value = draw(type, random() >> 8);
    std::memcpy(data.data() + at, &value, width);
  }
  return data;
}

}  // namespace

void make_up_arguments(const Artifact& artifact, const KernelNames& names,
                       const std::map<std::string, int64_t>& sizes, int64_t limit_bytes,
                       v1::RunRequest& request) {
  const std::vector<int64_t> values = given_sizes(
      names, sizes, fmt::format("{} is tuned", called(names.kernel)), ", or the inputs");
  std::mt19937_64 random(20);  // any, but always the same
  int64_t total = 0;
  for (size_t i = 0; i < artifact.parameters.size(); ++i) {
    const Parameter& parameter = artifact.parameters[i];
    v1::Argument& argument = *request.add_arguments();
    if (parameter.is_output) {
      argument.mutable_output();
      continue;
    }
    std::vector<int64_t> shape;
    for (const SizeExpr& extent : parameter.shape) {
      shape.push_back(extent.evaluate(values));
      if (shape.back() < 0) {
        fail(ErrorKind::InvalidArgument, "SIZE", "dimension {} of {} would be {} with these sizes",
             shape.size() - 1, names.parameters[i], shape.back());
      }
    }
    const int64_t bytes = byte_size(parameter.type, shape);
    if (bytes > limit_bytes - total) {
      fail(ErrorKind::ResourceExhausted, "TENSOR_MEMORY",
           "the inputs of {} take more than the {} bytes that the daemon has for tensors; tune for "
           "smaller sizes",
           called(names.kernel), limit_bytes);
    }
    total += bytes;
    v1::Inline& value = *argument.mutable_inline_();
    value.set_type(static_cast<v1::DataType>(parameter.type));
    value.mutable_shape()->Add(shape.begin(), shape.end());
    value.set_data(contents(parameter.type, bytes, random));
  }
}

}  // namespace kiln::server

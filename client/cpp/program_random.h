#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/tensor.h>

namespace kiln {
inline namespace client {
namespace detail {

/// Which numbers: a seed, and the number of the tensor in its program.
struct RandomStream {
  std::uint64_t seed;
  std::uint64_t tensor;
};

/// Random float32 numbers of a step, uniform from 0 to 1 or of a normal distribution.
Tensor random_tensor(bool is_normal, const std::vector<std::int64_t>& shape, const Tensor& step,
                     RandomStream stream, const std::string& name, const SourceLocation& where);

}  // namespace detail
}  // namespace client
}  // namespace kiln

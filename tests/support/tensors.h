#pragma once

#include <cstring>
#include <vector>

#include "compiler/language/evaluate/host_tensor.h"

namespace kiln::testing {

using language::HostTensor;

/// The type that stands for T in a HostTensor.
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  if constexpr (std::is_same_v<T, int8_t>) return DType::Int8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::Int16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::Int32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::Int64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::UInt8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::UInt16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::UInt32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::UInt64;
  if constexpr (std::is_same_v<T, float>) return DType::Float32;
  if constexpr (std::is_same_v<T, double>) return DType::Float64;
}

inline int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

/// A tensor of zeros.
inline HostTensor zeros(DType type, std::vector<int64_t> shape) {
  const auto bytes = static_cast<size_t>(element_count(shape) * size_of(type));
  return {type, std::move(shape), std::vector<std::byte>(bytes)};
}

template <typename T>
HostTensor tensor_of(std::vector<int64_t> shape, const std::vector<T>& values) {
  HostTensor tensor = zeros(dtype_of<T>(), std::move(shape));
  // The data of an empty vector may be null, which memcpy must not be given.
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

template <typename T>
std::vector<T> values_of(const HostTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace kiln::testing

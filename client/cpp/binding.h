#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kiln/definition.h>

#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {
namespace detail {

/// What the parts of a definition stand for in one call on tensors.
struct Binding {
  const border::WireKernel& kernel;
  SourceLocation where;
  std::map<std::uint32_t, Expr> sizes;       // by variable
  std::map<int, DType> types;                // by type of the definition
  std::map<std::uint32_t, Given> arguments;  // by stage of an input
  std::map<std::uint32_t, Shape> batches;    // by stage: the dimensions in front
  /// From the end, 1 being the last: where the one dimension of the definition stands.
  std::optional<std::size_t> axis = {};
};

/// Which of (dimensions in front, own dimensions) stands where in a tensor.
std::vector<std::size_t> order_of(std::size_t dimensions, std::size_t rank,
                                  std::optional<std::size_t> axis);
/// In an argument: one that has not so many dimensions has its own last.
std::vector<std::size_t> order_of_argument(std::size_t dimensions, std::size_t rank,
                                           std::optional<std::size_t> axis);

/// Sizes, types and dimensions in front, from the arguments; checked.
Binding bind(const border::WireKernel& kernel, const std::vector<Given>& arguments,
             const std::map<std::string, Expr>& sizes, std::optional<Along> along,
             const SourceLocation& where);

/// The parameters of a definition that are (not) placeholders.
std::vector<v1::TensorId> parameters_of(const v1::Definition& definition, bool inputs);
std::string name_of(const border::WireKernel& kernel, const v1::TensorId& tensor);

}  // namespace detail
}  // namespace client
}  // namespace kiln

// The calls that a product of matrices becomes in CUDA C, of functions of the prelude, whose
// fragments lie in kiln_rows and kiln_columns: of rows, what is eight below comes second, and what
// is half of the steps on third; of columns two tiles are loaded at once, of each what is half of
// the steps on second.
#include "compiler/codegen/matrix_calls.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "compiler/analysis/matrix_fragments.h"
#include "compiler/codegen/cuda_expr.h"

namespace kiln::codegen {
namespace {

std::string multiply_function(DType a, DType b) {
  if (a == DType::Float32) return "kiln_multiply_tf32";
  const std::string_view x = cuda_type(a);
  const std::string_view y = cuda_type(b);
  if (size_of(a) > 1) return fmt::format("kiln_multiply<{}, {}>", x, a == DType::BFloat16);
  if (is_int(a)) return fmt::format("kiln_multiply_bytes<{}, {}>", x, y);
  return fmt::format("kiln_multiply_float8<{}, {}, {}, {}>", x, y, a == DType::Float8E5M2,
                     b == DType::Float8E5M2);
}

/// How far apart places are, where that is the same of all.
std::optional<int64_t> distance_of(const std::vector<int64_t>& places) {
  const int64_t distance = places.size() > 1 ? places[1] - places[0] : 0;
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i] - places[i - 1] != distance) return std::nullopt;
  }
  return distance;
}

}  // namespace

std::string_view matrix_condition(const MatrixProduct& product) {
  const DType type = product.rows.buffer->type;
  if (size_of(type) > 1) return "KILN_HAS_MATRIX_UNITS";
  return is_int(type) ? "KILN_HAS_BYTE_MATRIX_UNITS" : "KILN_HAS_FLOAT8_MATRIX_UNITS";
}

std::vector<std::string> load_calls(const MatrixFactor& factor, bool are_columns,
                                    std::string_view to, const PlaceBehind& place) {
  if (factor.has_turned_words()) {
    const auto [second, third] = analysis::word_distances(factor, are_columns);
    if (factor.buffer->swizzle == 0)
      return {fmt::format("kiln_load_words<{}, {}>({}, {});", second, third, to, place(0))};
    // Each word is exchanged for itself.
    std::vector<std::string> calls;
    const std::array behind = {int64_t{0}, second, third, second + third};
    for (size_t word = 0; word < behind.size(); ++word) {
      calls.push_back(
          fmt::format("*({} + {}) = *(const unsigned*){};", to, word, place(behind[word])));
    }
    return calls;
  }
  if (factor.has_turned_bytes())
    return {fmt::format("kiln_load_turned_bytes<{}>({}, {});", are_columns, to, place(0))};
  return {fmt::format("kiln_load_matrices<{}>({}, {});", factor.is_transposed, to, place(0))};
}

std::vector<std::string> multiply_calls(const MatrixProduct& product, std::string_view sums) {
  const std::string function =
      multiply_function(product.rows.buffer->type, product.columns.buffer->type);
  const auto call = [&](std::string_view place, auto i, auto j) {
    const auto sum = [&](int64_t behind) {
      return behind == 0 ? fmt::format("{}[{}]", sums, place)
                         : fmt::format("{}[{} + {}]", sums, place, behind);
    };
    return fmt::format("{}({}, {}, {}, {}, kiln_rows[{}], kiln_columns[{}]);", function, sum(0),
                       sum(product.neighbour), sum(product.lower),
                       sum(product.lower + product.neighbour), i, j);
  };
  const auto down = distance_of(product.row_places);
  const auto across = distance_of(product.column_places);
  const int64_t first = product.row_places[0] + product.column_places[0];
  if (down && across) {
    const std::string place =
        fmt::format("{}kiln_i * {} + kiln_j * {}", first == 0 ? "" : fmt::format("{} + ", first),
                    *down, *across);
    return {
        "#pragma unroll",
        fmt::format("for (int kiln_i = 0; kiln_i < {}; ++kiln_i) {{", product.row_places.size()),
        "  #pragma unroll",
        fmt::format("  for (int kiln_j = 0; kiln_j < {}; ++kiln_j)", product.column_places.size()),
        "    " + call(place, "kiln_i", "kiln_j"),
        "}"};
  }
  std::vector<std::string> calls;
  for (size_t i = 0; i < product.row_places.size(); ++i) {
    for (size_t j = 0; j < product.column_places.size(); ++j)
      calls.push_back(
          call(fmt::format("{}", product.row_places[i] + product.column_places[j]), i, j));
  }
  return calls;
}

}  // namespace kiln::codegen

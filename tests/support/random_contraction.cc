// Products with something made of their sums.
#include "tests/support/random_contraction.h"

#include <fmt/ranges.h>

namespace kiln::testing {
namespace {

/// A name for each axis, with its extent.
struct DrawnAxis {
  std::string name;
  std::string extent;
};

std::string names_of(const std::vector<DrawnAxis>& axes) {
  std::vector<std::string> names;
  for (const DrawnAxis& axis : axes)
    names.push_back(axis.name);
  return fmt::format("{}", fmt::join(names, ", "));
}
std::string extents_of(const std::vector<DrawnAxis>& axes) {
  std::vector<std::string> extents;
  for (const DrawnAxis& axis : axes)
    extents.push_back(axis.extent);
  return fmt::format("{}", fmt::join(extents, ", "));
}

/// Of the factors and of their sum.
struct DrawnTypes {
  std::string rows;
  std::string columns;
  std::string sum = "float32";
};

DrawnTypes drawn_types(Random& random) {
  constexpr std::string_view kFloats[] = {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                                          "float32"};
  constexpr std::string_view kIntegers[] = {"int8", "uint8"};
  if (random.chance(0.6)) {
    const std::string type(kFloats[random.between(0, 4)]);
    return {type, type};
  }
  return {std::string(kIntegers[random.between(0, 1)]),
          std::string(kIntegers[random.between(0, 1)]), "int32"};
}

}  // namespace

DrawnContraction drawn_contraction(Random& random, const DrawnExtents& extents) {
  DrawnContraction drawn;
  const DrawnTypes types = drawn_types(random);
  const bool is_even = types.rows == "float32" && random.chance(0.8);  // rows begin at 16 bytes
  const auto axis = [&](const char* name, int least, int most) {
    const int drawn_extent = random.between(least, most);
    const int extent = is_even && most > 4 ? (drawn_extent + 3) / 4 * 4 : drawn_extent;
    if (is_even || !random.chance(0.25)) return DrawnAxis{name, fmt::to_string(extent)};
    drawn.sizes.push_back(extent);
    return DrawnAxis{name, fmt::format("n{}", drawn.sizes.size())};
  };
  const DrawnAxis i = axis("i", extents.least_of_side, extents.most_of_side);
  const DrawnAxis j = axis("j", extents.least_of_side, extents.most_of_side);
  const DrawnAxis k = axis("k", extents.least_of_sum, extents.most_of_sum);
  std::vector<DrawnAxis> rows = {i, k};
  std::vector<DrawnAxis> columns = {k, j};
  std::vector<DrawnAxis> output = {i, j};
  for (const char* name : {"b", "c"}) {
    if (!random.chance(0.4)) continue;
    const DrawnAxis batch = axis(name, 1, 3);
    const int where = random.between(0, 2);  // of both factors, or of one
    if (where != 1) rows.push_back(batch);
    if (where != 2) columns.push_back(batch);
    output.push_back(batch);
  }
  for (std::vector<DrawnAxis>* axes : {&rows, &columns, &output})
    random.shuffle(*axes);
  std::string arguments = fmt::format("A: {}[{}], B: {}[{}]", types.rows, extents_of(rows),
                                      types.columns, extents_of(columns));
  std::string result = fmt::format("S[{}]", names_of(output));
  std::string output_type = types.sum;
  if (random.chance(0.5)) {
    std::vector<DrawnAxis> some = output;
    random.shuffle(some);
    some.resize(static_cast<size_t>(random.between(1, static_cast<int>(some.size()))));
    // Of a type that is cast first, or not.
    const std::string type = random.chance(0.5) ? types.rows : types.sum;
    arguments += fmt::format(", bias: {}[{}]", type, extents_of(some));
    result = fmt::format("{} + {}(bias[{}])", result, types.sum, names_of(some));
  }
  if (types.sum == "int32" && random.chance(0.5)) {
    output_type = "float32";
    result = fmt::format("float32({})", result);
  }
  const bool is_int = output_type == "int32";
  if (random.chance(0.3)) result = fmt::format("({}) * {}", result, is_int ? "3" : "0.125");
  if (random.chance(0.3) && !is_int) result = fmt::format("({}) / 3.0", result);
  if (random.chance(0.5)) result = fmt::format("max({}, {})", result, is_int ? "0" : "0.0");
  if (random.chance(0.3)) {
    const std::string_view choice = random.chance(0.5) ? "select" : "if_then_else";
    result = fmt::format("{}(i + 1 > j*2, {}, {})", choice, result, is_int ? "7" : "-1.5");
  }
  if (random.chance(0.5)) {
    output_type = random.chance(0.5) ? "float16" : "bfloat16";
    result = fmt::format("{}({})", output_type, result);
  }
  drawn.text = fmt::format(
      "kernel k({0}) -> (C: {1}[{2}]) {{\n"
      "  S: {8}[{2}]\n"
      "  S[{3}] = sum[k < {4}]({9}(A[{5}]) * {9}(B[{6}]))\n"
      "  C[{3}] = {7}\n}}\n",
      arguments, output_type, extents_of(output), names_of(output), k.extent, names_of(rows),
      names_of(columns), result, types.sum, types.rows == "float32" ? "tf32" : types.sum);
  return drawn;
}

std::string without_tf32(std::string text) {
  constexpr std::string_view kCall = "tf32(";
  for (size_t at = text.find(kCall); at != std::string::npos; at = text.find(kCall))
    text.replace(at, kCall.size(), "(");
  return text;
}

}  // namespace kiln::testing

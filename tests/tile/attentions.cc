// Attentions of all kinds as text, and how near to their definitions results are.
#include "tests/tile/attentions.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "compiler/tile/attention.h"

namespace kiln::testing {
namespace {

std::string names_of(const Axes& axes) {
  std::vector<std::string> names;
  for (const auto& [name, extent] : axes)
    names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}
std::string extents_of(const Axes& axes) {
  std::vector<std::string> extents;
  for (const auto& [name, extent] : axes)
    extents.push_back(extent);
  return fmt::format("{}", fmt::join(extents, ", "));
}

/// By how much a weight may differ: it is rounded once, in the definition after it is divided by
/// their sum, on tiles before. In float32 sums of other orders come to that.
double unit_of(DType weights) {
  if (weights == DType::Float32) return std::ldexp(1.0, -22);
  return std::ldexp(1.0, weights == DType::BFloat16 ? -8 : -11);
}

double largest_of(const HostTensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < element_count(tensor.shape); ++i)
    largest = std::max(largest, std::abs(language::read_element(tensor, i).floating));
  return largest;
}

}  // namespace

std::string Attention::text() const {
  Axes rows = batches;
  rows.push_back(row);
  Axes all = rows;
  all.push_back(key);
  const auto with = [](std::string text, std::string_view part, const std::string& other) {
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
      text.replace(at, part.size(), other);
    return text;
  };
  return fmt::format(
      R"(kernel attention(Q: {type}[{qx}], K: {type}[{kx}], V: {type}[{vx}]{more}) -> (O: {ot}[{ox}]) {{
  P: float32[{allx}]
  P[{all}] = sum[{k} < {depth}](float32(Q[{q}]) * float32(K[{ks}]))
  S: float32[{allx}]
  S[{all}] = {score}
  M: float32[{rowsx}]
  M[{rows}] = max[{j} < {keys}](S[{all}])
  E: float32[{allx}]
  E[{all}] = exp(S[{all}] - M[{rows}])
  L: float32[{rowsx}]
  L[{rows}] = sum[{j} < {keys}](E[{all}])
  W: {type}[{allx}]
  W[{all}] = {type}(E[{all}] / L[{rows}])
  A: float32[{ox}]
  A[{o}] = sum[{j} < {keys}](float32(W[{all}]) * float32(V[{v}]))
  O[{o}] = {result}
}}
)",
      fmt::arg("type", type), fmt::arg("qx", extents_of(query)), fmt::arg("kx", extents_of(keys)),
      fmt::arg("vx", extents_of(values)), fmt::arg("more", more), fmt::arg("ot", output_type),
      fmt::arg("ox", extents_of(output)), fmt::arg("allx", extents_of(all)),
      fmt::arg("all", names_of(all)), fmt::arg("k", depth.first), fmt::arg("depth", depth.second),
      fmt::arg("q", names_of(query)), fmt::arg("ks", names_of(keys)),
      fmt::arg("score", with(score, "T", fmt::format("P[{}]", names_of(all)))),
      fmt::arg("rowsx", extents_of(rows)), fmt::arg("rows", names_of(rows)),
      fmt::arg("j", key.first), fmt::arg("keys", key.second), fmt::arg("o", names_of(output)),
      fmt::arg("v", names_of(values)),
      fmt::arg("result", with(result, "R", fmt::format("A[{}]", names_of(output)))));
}

std::string drawn_attention(Random& random, std::vector<int64_t>& sizes) {
  Attention written;
  const auto axis = [&](const char* name, int least, int most, bool may_be_open) {
    const int extent = random.between(least, most);
    if (!may_be_open || !random.chance(0.25)) return std::pair(name, fmt::to_string(extent));
    sizes.push_back(extent);
    return std::pair(name, fmt::format("n{}", sizes.size()));
  };
  constexpr std::string_view kTypes[] = {"float16", "bfloat16", "float32"};
  written.type = kTypes[random.between(0, 2)];
  written.row = axis("i", 1, 150, true);
  written.key = axis("j", 1, 150, true);
  written.column = axis("d", 1, 40, false);
  written.depth = axis("k", 1, 40, false);
  written.batches.clear();
  written.query = {written.row, written.depth};
  written.keys = {written.key, written.depth};
  written.values = {written.key, written.column};
  written.output = {written.row, written.column};
  for (const char* name : {"b", "h"}) {
    if (!random.chance(0.5)) continue;
    const auto batch = axis(name, 1, 3, true);
    written.batches.push_back(batch);
    written.query.push_back(batch);
    written.output.push_back(batch);
    if (!random.chance(0.7)) continue;  // all rows of the batch have one set of keys and values
    written.keys.push_back(batch);
    written.values.push_back(batch);
  }
  for (Axes* axes : {&written.query, &written.keys, &written.values, &written.output})
    random.shuffle(*axes);
  if (random.chance(0.3)) {
    written.more += fmt::format(", B: float32[{}]", written.key.second);
    written.score += " + B[j]";
  }
  if (random.chance(0.5)) {
    constexpr std::string_view kSeen[] = {"j <= i",
                                          "j <= i + 1",
                                          "j < i + 3",
                                          "j <= i + 65",
                                          "i >= j",
                                          "i*2 + 1 > j",
                                          "j < 9",
                                          "j > 64",
                                          "j > i - 9",
                                          "j <= 90 - i",
                                          "j <= i && i < j + 7"};
    const auto last = static_cast<int>(std::size(kSeen)) - 1;
    written.score =
        fmt::format("select({}, {}, -inf)", kSeen[random.between(0, last)], written.score);
  }
  if (random.chance(0.3)) {
    written.more += fmt::format(", C: {}[{}]", written.type, written.column.second);
    written.result = "R * 2.0 + float32(C[d])";
  }
  if (random.chance(0.5)) {
    written.output_type = written.type;
    written.result = fmt::format("{}({})", written.type, written.result);
  }
  return written.text();
}

HostTensor drawn_floats(DType type, std::vector<int64_t> shape, Random& random) {
  HostTensor tensor = zeros(type, std::move(shape));
  for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
    const double number = random.between(-128, 128) / 64.0;
    language::write_element(tensor, i, language::Scalar::of_float(type, number));
  }
  return tensor;
}

std::vector<HostTensor> drawn_inputs(const language::Kernel& kernel,
                                     const std::vector<int64_t>& sizes, Random& random) {
  std::vector<HostTensor> inputs;
  for (const tile::Parameter& parameter : tile::attention(kernel, {}).parameters) {
    std::vector<int64_t> extents;
    for (const tile::Extent& extent : parameter.shape)
      extents.push_back(extent.at(sizes));
    if (!parameter.is_output) inputs.push_back(drawn_floats(parameter.type, extents, random));
  }
  return inputs;
}

void expect_near(const HostTensor& actual, const HostTensor& expected, const HostTensor& values) {
  ASSERT_EQ(actual.shape, expected.shape);
  const double unit = unit_of(values.type);
  const double largest = 2 * largest_of(values);  // some results are twice as large
  for (int64_t i = 0; i < element_count(actual.shape); ++i) {
    const double got = language::read_element(actual, i).floating;
    const double wanted = language::read_element(expected, i).floating;
    if (std::isnan(wanted) && std::isnan(got)) continue;
    EXPECT_NEAR(got, wanted, 2 * unit * (largest + std::abs(wanted)) + 1e-6) << i;
  }
}

}  // namespace kiln::testing

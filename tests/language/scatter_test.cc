#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/wire/canonical.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"
#include "tests/support/tensors.h"

namespace kiln::language {
namespace {

using testing::expect_error;
using testing::kernel_of;
using testing::tensor_of;
using testing::values_of;

constexpr const char* kScatter = R"(
kernel k(B: float32[n, d], idx: int32[m], X: float32[m, d]) -> (S: float32[n, d]) {
  S = scatter_add[r < m, c < d](B, int64(idx[r]), c, X[r, c])
}
)";

HostTensor run(std::string_view text, const std::vector<int64_t>& sizes,
               const std::vector<HostTensor>& inputs) {
  const TextKernel kernel = kernel_of(text);
  return evaluate(kernel.kernel.definition, kernel.kernel.names, sizes, inputs)[0];
}

std::string printed_again(std::string_view text) { return print_text(kernel_of(text)); }

TEST(Scatter, AddsUpdatesInOrder) {
  const HostTensor base = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const HostTensor idx = tensor_of<int32_t>({3}, {1, 0, 1});
  const HostTensor x = tensor_of<float>({3, 2}, {10, 20, 30, 40, 1e9F, -1e9F});
  // (3 + 10) + 1e9 loses the small part, as numpy.add.at does in this order.
  EXPECT_EQ(values_of<float>(run(kScatter, {2, 2, 3}, {base, idx, x})),
            (std::vector<float>{31, 42, 1e9F, -1e9F}));
}

TEST(Scatter, TakesTheLastUpdateWhereItReplaces) {
  const HostTensor base = tensor_of<int32_t>({3}, {7, 8, 9});
  const HostTensor idx = tensor_of<int64_t>({4}, {2, 0, 2, 0});
  EXPECT_EQ(values_of<int32_t>(run(R"(
kernel k(B: int32[n], idx: int64[m]) -> (S: int32[n]) { S = scatter[r < m](B, idx[r], int32(r)) }
)",
                                   {3, 4}, {base, idx})),
            (std::vector<int32_t>{3, 8, 2}));
}

TEST(Scatter, TakesTheSmallerOrTheLarger) {
  const HostTensor base = tensor_of<int32_t>({2}, {5, 5});
  const HostTensor x = tensor_of<int32_t>({2, 2}, {7, 3, 4, 9});
  const auto text = [](std::string_view combiner) {
    return fmt::format(
        "kernel k(B: int32[n], X: int32[m, n]) -> (S: int32[n]) {{"
        "  S = scatter_{}[i < m, j < n](B, j, X[i, j]) }}",
        combiner);
  };
  EXPECT_EQ(values_of<int32_t>(run(text("min"), {2, 2}, {base, x})), (std::vector<int32_t>{4, 3}));
  EXPECT_EQ(values_of<int32_t>(run(text("max"), {2, 2}, {base, x})), (std::vector<int32_t>{7, 9}));
}

TEST(Scatter, OfNothingIsItsBase) {
  const HostTensor base = tensor_of<float>({2, 1}, {1, 2});
  const HostTensor idx = tensor_of<int32_t>({0}, {});
  const HostTensor x = tensor_of<float>({0, 1}, {});
  EXPECT_EQ(values_of<float>(run(kScatter, {2, 1, 0}, {base, idx, x})), (std::vector<float>{1, 2}));
}

TEST(Scatter, IsPrintedAsItIsWritten) {
  const std::string text =
      "kernel k(B: float32[n, d], idx: int32[m], X: float32[m, d]) -> (S: float32[n, d]) {\n"
      "  S = scatter_add[r < m, c < d](B, int64(idx[r]), c, X[r, c])\n"
      "}\n";
  EXPECT_EQ(printed_again(text), text);
  const std::string scalar =
      "kernel k(B: float32[], X: float32[m]) -> (S: float32[]) {\n"
      "  S = scatter_max[r < m](B, X[r])\n"
      "}\n";
  EXPECT_EQ(printed_again(scalar), scalar);
}

TEST(Scatter, IsPartOfTheIdOfAKernel) {
  const auto id = [](std::string_view text) {
    return id_of(canonical_form(kernel_of(text).kernel.definition));
  };
  std::string other = kScatter;
  other.replace(other.find("scatter_add"), 11, "scatter_max");
  EXPECT_NE(id(kScatter), id(other));
  EXPECT_EQ(id(kScatter), id(kScatter));
}

TEST(Scatter, RefusesAnIndexOutsideOfItsBase) {
  const HostTensor base = tensor_of<float>({2, 1}, {1, 2});
  const HostTensor x = tensor_of<float>({1, 1}, {1});
  for (const int index : {2, -1}) {
    expect_error(
        [&] {
          run(kScatter, {2, 1, 1}, {base, tensor_of<int32_t>({1}, {index}), x});
        },
        ErrorKind::InvalidArgument,
        fmt::format("S[{}, 0] is outside of S, which has shape (2, 1)", index));
  }
  expect_error(
      [&] {
        run(kScatter, {0, 1, 1}, {tensor_of<float>({0, 1}, {}), tensor_of<int32_t>({1}, {0}), x});
      },
      ErrorKind::InvalidArgument, "S[0, 0] is outside of S, which has shape (0, 1)");
}

TEST(Scatter, RefusesWhatItCannotMean) {
  const auto refused = [](std::string_view call, std::string_view message) {
    const std::string text = fmt::format(
        "kernel k(B: float32[n], X: float32[n, n], idx: int64[n]) -> (S: float32[n]) {{ S = {} }}",
        call);
    expect_error([&] { kernel_of(text); }, ErrorKind::InvalidArgument, message);
  };
  refused("scatter_mul[r < n](B, r, 1.0)",
          "unknown function scatter_mul; a scatter is scatter_add, scatter_min, scatter_max or "
          "scatter");
  refused("scatter_add[r < n](B, 1.0)", "B has 1 dimension, but scatter_add got 0 indices");
  refused("scatter_add[r < n](B)",
          "scatter_add takes the base, an index for each dimension, and the update");
  refused("scatter_add[r < n](B, r, idx[r])",
          "B is float32, but the update is int64; cast it, as in float32(...)");
  refused("scatter_add[r < n](X, r, r, 1.0)",
          "S is declared float32 (n,), but the scatter makes it float32 (n, n)");
  refused("scatter_add[r < n, r < n](B, r, 1.0)",
          "r is an axis already; give the axis another name");
  refused("scatter_add[0 <= r < n](B, r, 1.0)", "expected a range such as r < m");
  refused("scatter_add[r < n](1.0, r, 1.0)", "the base of a scatter is the name of a tensor");
}

TEST(Scatter, LeavesReductionsToOtherStages) {
  expect_error(
      [] {
        kernel_of(
            "kernel k(B: float32[n]) -> (S: float32[n]) {"
            "  S = scatter_add[r < n](B, r, sum[j < n](B[j])) }");
      },
      ErrorKind::Unsupported,
      "S holds a reduction; compute it in a stage of its own and scatter that");
}

TEST(DataBounds, AreReadForEachElement) {
  constexpr const char* kSpmv = R"(
kernel spmv(ptr: int32[p], col: int32[z], val: float32[z], x: float32[n])
    -> (y: float32[p - 1]) {
  y[i] = sum[int64(ptr[i]) <= k < int64(ptr[i + 1])](val[k] * x[int64(col[k])])
}
)";
  // The matrix (1 2 0; 0 0 0; 0 0 3) by (1, 10, 100); its second row has no entry.
  const std::vector<HostTensor> inputs = {
      tensor_of<int32_t>({4}, {0, 2, 2, 3}), tensor_of<int32_t>({3}, {0, 1, 2}),
      tensor_of<float>({3}, {1, 2, 3}), tensor_of<float>({3}, {1, 10, 100})};
  EXPECT_EQ(values_of<float>(run(kSpmv, {4, 3, 3}, inputs)), (std::vector<float>{21, 0, 300}));
  const std::string text = printed_again(kSpmv);
  EXPECT_EQ(printed_again(text), text);
  EXPECT_EQ(id_of(canonical_form(kernel_of(text).kernel.definition)),
            id_of(canonical_form(kernel_of(kSpmv).kernel.definition)));
}

TEST(DataBounds, AreNoReductionsThemselves) {
  expect_error(
      [] {
        kernel_of(
            "kernel k(X: int64[n]) -> (Y: int64[n]) {"
            "  Y[i] = sum[k < max[j < n](X[j])](k) }");
      },
      ErrorKind::Unsupported,
      "the bounds of reduce axis k hold a reduction; compute it in a stage of its own and read "
      "that");
}

}  // namespace
}  // namespace kiln::language

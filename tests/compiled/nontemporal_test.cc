/// Outputs large enough for non-temporal stores, at places that are aligned and that are not.

#include <cstring>

#include <gtest/gtest.h>

#include "compiler/ir/parse.h"
#include "tests/support/run_on_cpu.h"

namespace kiln {
namespace {

using testing::HostTensor;

struct Size {
  int64_t rows;
  int64_t columns;
};

/// Rows of 1000 begin at multiples of 32 bytes, those of 1001 anywhere, so that they go to the
/// caches.
class Nontemporal : public ::testing::TestWithParam<Size> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Nontemporal,
                         ::testing::Values(Size{3000, 1024}, Size{3000, 1000}, Size{3000, 1001},
                                           Size{3, 1001}),
                         [](const auto& info) {
                           return std::to_string(info.param.rows) + "x" +
                                  std::to_string(info.param.columns);
                         });

TEST_P(Nontemporal, StoresEveryElement) {
  const auto [rows, columns] = GetParam();
  const ir::Kernel kernel = ir::parse(R"(fn f(A: float32[m, n], C: float32[m, n]) {
    nontemporal C
    for i in 0..m parallel {
      for j in 0..floordiv(n, 32) {
        C[ramp(i*n + j*32, 1, 32)] = A[ramp(i*n + j*32, 1, 32)] + broadcast(1.0, 32)
      }
      for j in 0..floormod(n, 32) {
        C[i*n + floordiv(n, 32)*32 + j] = A[i*n + floordiv(n, 32)*32 + j] + 1.0
      }
    }
  })");
  std::vector<HostTensor> tensors = {testing::zeros(DType::Float32, {rows, columns}), {}};
  auto* const in = reinterpret_cast<float*>(tensors[0].bytes.data());
  const auto count = static_cast<size_t>(rows * columns);
  for (size_t i = 0; i < count; ++i)
    in[i] = static_cast<float>(i % 65536);
  testing::run_artifact(testing::compile_lowered(kernel), tensors, {{"n0", rows}, {"n1", columns}});
  std::vector<float> out(count);
  std::memcpy(out.data(), tensors[1].bytes.data(), count * sizeof(float));
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i)
    wrong += out[i] != static_cast<float>(i % 65536 + 1) ? 1 : 0;
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kiln

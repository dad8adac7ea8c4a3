#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/language/text/text.h"
#include "compiler/schedule/build_loops.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// C[i, j] = B[j, i], of a copy of B for each block, or each iteration.
ir::Kernel swizzled(std::string_view type, int every, TargetKind target = TargetKind::Cuda,
                    std::string_view more = "") {
  const std::string text = fmt::format(
      R"(kernel k(B: {0}[64, 64]) -> (C: {0}[64, 64]) {{
  C[i, j] = B[j, i]
  schedule {2} {{
    cache_read(B, shared, C)
    split(C.i, factor=32)
    {4}
    compute_at(B.shared, C.i.outer)
    storage_swizzle(B.shared, every={1})
    {3}
  }} }})",
      type, every, target == TargetKind::Cuda ? "cuda" : "cpu", more,
      target == TargetKind::Cuda ? "bind(C.i.outer, blockIdx.x) bind(C.i.inner, threadIdx.x)" : "");
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  return build_loops(kernel.kernel, kernel.schedules.at(0).second, Target{.kind = target},
                     CompileOptions{});
}

TEST(StorageSwizzle, IsOfSharedMemory) {
  const std::string loops = ir::print(swizzled("float16", 64));
  EXPECT_NE(loops.find("allocate B.shared: float16[64, 32] scope(shared) swizzle(64)"),
            std::string::npos)
      << loops;
}

TEST(StorageSwizzle, GoesWithRowsThatAreApart) {
  const std::string loops = ir::print(
      swizzled("float32", 32, TargetKind::Cuda, "storage_align(B.shared.ax0, factor=8, offset=1)"));
  EXPECT_NE(
      loops.find("allocate B.shared: float32[64, 32] strides[33, 1] scope(shared) swizzle(32)"),
      std::string::npos)
      << loops;
}

/// What threads of a host share has no banks.
TEST(StorageSwizzle, IsNotedWhereMemoryHasNoBanks) {
  const ir::Kernel kernel = swizzled("float16", 64, TargetKind::Llvm);
  EXPECT_EQ(ir::print(kernel).find("swizzle("), std::string::npos);
  EXPECT_EQ(kernel.notes.back(),
            "B.shared lies as it is: only the shared memory of a GPU has banks");
}

TEST(StorageSwizzle, OfWhatIsInlineSaysNothing) {
  const language::TextKernel kernel =
      language::parse_text(R"(kernel k(A: float32[64]) -> (C: float32[64]) {
  B: float32[64]
  B[i] = A[i] * 2.0
  C[i] = B[i] + 1.0
  schedule cpu { storage_swizzle(B, every=32) compute_inline(B) } })",
                           "test.kiln")
          .at(0);
  const ir::Kernel loops = build_loops(kernel.kernel, kernel.schedules.at(0).second,
                                       Target{.kind = TargetKind::Llvm}, CompileOptions{});
  EXPECT_EQ(loops.notes, std::vector<std::string>());
}

TEST(StorageSwizzle, NeedsAtLeastAllBanks) {
  const Error error = expect_error(
      [] { swizzled("float16", 32); }, ErrorKind::InvalidArgument,
      "storage_swizzle(B.shared, every=32): 16 bytes change places among 128, which are 64 "
      "elements of float16, so `every` must be at least that");
  EXPECT_EQ(error.reason(), "STORAGE_SWIZZLE");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 6: storage_swizzle(B.shared)"});
}

TEST(StorageSwizzle, NeedsAPowerOfTwo) {
  expect_error([] { swizzled("float16", 96); }, ErrorKind::InvalidArgument,
               "storage_swizzle(B.shared) takes a power of two of elements, at most 1048576, but "
               "got 96");
}

}  // namespace
}  // namespace kiln::testing

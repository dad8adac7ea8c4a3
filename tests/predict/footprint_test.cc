#include "compiler/predict/footprint.h"

#include <gtest/gtest.h>

#include "tests/support/parse_ir.h"

namespace kiln::predict {
namespace {

using testing::parse_kernel;

constexpr double kMiB = 1024 * 1024;

Footprint footprint_of(const char* parameters, const char* body) {
  return Footprint(nest_of(parse_kernel(parameters, body), {}, 29 * 64));
}

TEST(FootprintOfLoops, CountsEachLineOnce) {
  const Footprint twice = footprint_of("A: float32[1024], C: float32[1024]", R"(
    for t in 0..2 { for i in 0..1024 { C[i] = A[i] } })");
  EXPECT_EQ(twice.bytes(), 2 * 4096);
  // One element of each line is the whole line.
  const Footprint apart = footprint_of("A: float32[65536], C: float32[1024]", R"(
    for i in 0..1024 { C[i] = A[i*64] })");
  EXPECT_EQ(apart.bytes(), 1024 * 64 + 4096);
}

TEST(FootprintOfLoops, WhatDoesNotFitComesAgain) {
  const Footprint rows = footprint_of("A: float32[1048576], C: float32[64]", R"(
    for i in 0..64 { for k in 0..1048576 { C[i] = C[i] + A[k] } })");
  EXPECT_NEAR(rows.bytes_into({.bytes = 2 * kMiB}), 64 * 4 * kMiB, 64 * 64 * 2);
  EXPECT_NEAR(rows.bytes_into({.bytes = 8 * kMiB}), 4 * kMiB, 64 * 64);
}

TEST(FootprintOfLoops, TilesKeepWhatTheyShare) {
  // A row of A for all of B, which has 256 KiB; then four rows at once for each element of B.
  const char* const parameters = "A: float32[65536], B: float32[65536], C: float32[65536]";
  const Footprint plain = footprint_of(parameters, R"(
    for i in 0..256 { for j in 0..256 { for k in 0..256 {
      C[i*256 + j] = C[i*256 + j] + A[i*256 + k]*B[j*256 + k] } } })");
  const Footprint tiled = footprint_of(parameters, R"(
    for i in 0..64 { for j in 0..256 { for k in 0..256 { for r in 0..4 {
      C[i*1024 + r*256 + j] = C[i*1024 + r*256 + j] + A[i*1024 + r*256 + k]*B[j*256 + k] } } } })");
  const Cache l1{.bytes = 32 * 1024};
  EXPECT_GT(plain.bytes_into(l1), 3 * tiled.bytes_into(l1));
}

TEST(FootprintOfLoops, LinesAPageApartEvictEachOther) {
  // 64 lines fit into any cache, but not into the few sets that lines 4 KiB apart have.
  const auto columns = [](const char* stride) {
    const std::string body =
        std::string("for t in 0..100 { for i in 0..64 { C[i] = A[i*") + stride + " + t*4 ] } }";
    return footprint_of("A: float32[131072], C: float32[64]", body.c_str());
  };
  const Cache l1{.bytes = 32 * 1024, .ways = 8};
  EXPECT_GT(columns("1024").bytes_into(l1), 3 * columns("1040").bytes_into(l1));
}

}  // namespace
}  // namespace kiln::predict

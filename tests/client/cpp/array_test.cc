#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/array.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

TEST(Array, StartsWithZeros) {
  const Array a({2, 3}, int32);
  EXPECT_EQ(a.size(), 6U);
  for (const std::int32_t value : a.values<std::int32_t>())
    EXPECT_EQ(value, 0);
}

TEST(Array, HasOneElementWithoutDimensions) {
  EXPECT_EQ(Array({}, float64).size(), 1U);
  EXPECT_EQ(Array({3, 0}, float64).size(), 0U);
}

TEST(Array, SharesItsNumbersWithCopies) {
  const Array a(std::vector<float>{1, 2}, {2});
  const Array b = a;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  b.values<float>()[0] = 9;
  EXPECT_EQ(a.values<float>()[0], 9);
}

TEST(Array, RefusesAWrongNumberOfValues) {
  expect_client_error(
      [] {
        Array(std::vector<float>{1, 2, 3}, {2});
      },
      ErrorKind::InvalidArgument, "VALUE_COUNT", "an array of shape (2) has 2 values, but got 3");
}

TEST(Array, RefusesANegativeDimension) {
  expect_client_error(
      [] {
        Array({2, -1});
      },
      ErrorKind::InvalidArgument, "SHAPE", "dimension 1 of an array is -1, but must be at least 0");
}

TEST(Array, RefusesMoreBytesThanMemoryHolds) {
  const std::int64_t big = std::int64_t{1} << 32;
  expect_client_error(
      [&] {
        Array({big, big});
      },
      ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
      "an array of shape (4294967296, 4294967296) has more bytes than memory can hold");
}

TEST(Array, RefusesToBeReadAsAnotherType) {
  expect_client_error([] { Array({1}, float32).values<double>(); }, ErrorKind::InvalidArgument,
                      "VALUE_TYPE", "the array is float32, but is read as float64");
}

TEST(Array, GivesTheBitsOfHalfFloats) {
  EXPECT_EQ(Array({4}, float16).values<std::uint16_t>().size(), 4U);
}

TEST(ArrayText, AlignsColumns) {
  EXPECT_EQ(to_string(Array(std::vector<float>{1, 2.5, -10, 4}, {2, 2})),
            "[[  1.  2.5]\n [-10.   4.]]");
  EXPECT_EQ(to_string(Array(std::vector<std::int64_t>{7}, {})), "7");
  EXPECT_EQ(to_string(Array({0}, float32)), "[]");
}

TEST(ArrayText, SeparatesMatrices) {
  EXPECT_EQ(to_string(Array(std::vector<bool>{true, false}, {2, 1, 1})),
            "[[[ True]]\n\n [[False]]]");
}

TEST(ArrayText, ShortensPastAThousandElements) {
  std::vector<std::int32_t> values(2000);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(to_string(Array(values, {2000})), "[   0    1    2 ... 1997 1998 1999]");
}

TEST(ArrayText, ReadsHalfFloats) {
  Array half({3}, float16);
  const auto bits = half.values<std::uint16_t>();
  bits[0] = 0x3c00;  // 1
  bits[1] = 0xc100;  // -2.5
  bits[2] = 0x7c00;  // inf
  EXPECT_EQ(to_string(half), "[  1. -2.5  inf]");
}

}  // namespace
}  // namespace kiln::test

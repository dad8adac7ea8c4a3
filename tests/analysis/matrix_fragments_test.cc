// Fragments against the formulas of the PTX ISA ("Matrix Fragments for mma.m16n8k8", "..m16n8k16",
// "..m16n8k32", and ldmatrix), written as they stand there.
#include "compiler/analysis/matrix_fragments.h"

#include <array>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"

namespace kiln::testing {
namespace {

using analysis::LinearLayout;
using Place = std::pair<int64_t, int64_t>;

Place place_of(const LinearLayout& layout, std::span<const int64_t> numbers) {
  const std::vector<int64_t> at = layout.coordinates(numbers);
  return {at[0], at[1]};
}

TEST(MatrixFragments, OfSumsAreThoseOfThePtxIsa) {
  for (int64_t lane = 0; lane < 32; ++lane) {
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t group = lane >> 2;
      const int64_t in_group = lane % 4;
      const Place said = {i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
      EXPECT_EQ(place_of(analysis::fragment_of_sums(), std::array{i, lane}), said);
    }
  }
}

/// a_i or b_i of a lane, of elements of so many bytes.
Place row_of_ptx(int64_t bytes, int64_t lane, int64_t i) {
  const int64_t group = lane >> 2;
  const int64_t in_group = lane % 4;
  switch (bytes) {
    case 1:
      return {(0 <= i && i < 4) || (8 <= i && i < 12) ? group : group + 8,
              i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16};
    case 2:
      return {(0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8,
              i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8};
    default: return {i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4};
  }
}
Place column_of_ptx(int64_t bytes, int64_t lane, int64_t i) {
  const int64_t group = lane >> 2;
  const int64_t in_group = lane % 4;
  switch (bytes) {
    case 1: return {group, i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16};
    case 2: return {group, i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8};
    default: return {group, i == 0 ? in_group : in_group + 4};
  }
}

TEST(MatrixFragments, OfFactorsAreThoseOfThePtxIsa) {
  for (const int64_t bytes : {1, 2, 4}) {
    const int64_t in_word = 4 / bytes;
    const LinearLayout rows = analysis::fragment_of_rows(bytes);
    const LinearLayout columns = analysis::fragment_of_columns(bytes);
    for (int64_t lane = 0; lane < 32; ++lane) {
      for (int64_t i = 0; i < 4 * in_word; ++i)
        EXPECT_EQ(place_of(rows, std::array{i % in_word, i / in_word, lane}),
                  row_of_ptx(bytes, lane, i));
      for (int64_t i = 0; i < 2 * in_word; ++i)
        EXPECT_EQ(place_of(columns, std::array{i % in_word, i / in_word, lane}),
                  column_of_ptx(bytes, lane, i));
    }
    EXPECT_TRUE(rows.inverse());  // each element is one lane's
    EXPECT_TRUE(columns.inverse());
  }
}

/// What ldmatrix.x4 gives a lane: word `m` is two elements of 16 bits of matrix m, whose rows lanes
/// m*8 to m*8 + 7 name. Without .trans those of row lane/4, at lane%4*2; with it the other way.
struct Halves {
  int64_t owner = 0;  // who names the row
  int64_t first = 0;  // of 16 bits, in the row
};
std::array<Halves, 2> halves_of(int64_t lane, int64_t matrix, bool is_turned) {
  std::array<Halves, 2> halves;
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t row = is_turned ? lane % 4 * 2 + i : lane / 4;
    const int64_t column = is_turned ? lane / 4 : lane % 4 * 2 + i;
    halves[static_cast<size_t>(i)] = {matrix * 8 + row, column};
  }
  return halves;
}

/// Every element that a lane gets is the one that its fragment has there.
void expect_fragment(int64_t bytes, bool is_turned, bool are_columns) {
  const LinearLayout lanes = analysis::loads_of_lanes(bytes, is_turned, are_columns);
  for (int64_t lane = 0; lane < 32; ++lane) {
    for (int64_t matrix = 0; matrix < 4; ++matrix) {
      const auto halves = halves_of(lane, matrix, is_turned);
      for (int64_t element = 0; element < 4 / bytes; ++element) {
        const Halves& half = halves[static_cast<size_t>(element * bytes / 2)];
        const std::vector<int64_t> row = lanes.coordinates(std::array{half.owner});
        const int64_t in_row = (half.first * 2 + element * bytes % 2) / bytes;
        const Place got = {row[0] + (is_turned ? in_row : 0), row[1] + (is_turned ? 0 : in_row)};
        // Of columns two tiles are loaded, each in two words.
        const int64_t word = are_columns ? matrix % 2 : matrix;
        const Place wanted = are_columns ? column_of_ptx(bytes, lane, word * (4 / bytes) + element)
                                         : row_of_ptx(bytes, lane, word * (4 / bytes) + element);
        EXPECT_EQ(got, wanted);
        EXPECT_EQ(row[2], are_columns ? matrix / 2 : 0);
      }
    }
  }
}

TEST(MatrixFragments, AreWhatHardwareLoads) {
  for (const bool are_columns : {false, true}) {
    for (const int64_t bytes : {1, 2, 4})
      expect_fragment(bytes, false, are_columns);
    expect_fragment(2, true, are_columns);
  }
}

/// What is turned are pairs of bytes: of four steps that follow each other a lane has all, in two
/// words of one product or of two.
TEST(MatrixFragments, OfTurnedBytesHaveFourStepsThatFollowEachOther) {
  const LinearLayout lanes = analysis::loads_of_lanes(1, true, false);
  for (int64_t lane = 0; lane < 32; ++lane) {
    for (int64_t half = 0; half < 2; ++half) {
      std::map<int64_t, int> steps;
      for (int64_t matrix = 0; matrix < 2; ++matrix) {
        for (const Halves& each : halves_of(lane, half * 2 + matrix, true)) {
          EXPECT_EQ(each.first, lane / 4);  // the pair of rows
          ++steps[lanes.coordinates(std::array{each.owner})[1]];
        }
      }
      ASSERT_EQ(steps.size(), 4u);
      EXPECT_EQ(steps.begin()->first, lane % 4 * 4 + half * 16);
      EXPECT_EQ(steps.rbegin()->first, lane % 4 * 4 + half * 16 + 3);
    }
  }
}

TEST(MatrixFragments, OfTurnedWordsAreLoadedWordByWord) {
  const ir::BufferRef buffer =
      ir::Buffer::make("A", DType::Float32, {ir::index(4096)}, ir::Scope::Shared);
  const analysis::MatrixFactor factor{
      .buffer = buffer, .first = ir::index(0), .is_transposed = true, .row = 136, .tiles = {0, 8}};
  for (const bool are_columns : {false, true}) {
    const LinearLayout lanes = analysis::places_of_lanes(factor, are_columns);
    const auto [second, third] = analysis::word_distances(factor, are_columns);
    for (int64_t lane = 0; lane < 32; ++lane) {
      for (int64_t word = 0; word < 4; ++word) {
        const auto [side, step] =
            are_columns ? column_of_ptx(4, lane, word % 2) : row_of_ptx(4, lane, word);
        const int64_t tile = are_columns ? word / 2 * 8 : 0;
        EXPECT_EQ(lanes.place(std::array{lane}) + word % 2 * second + word / 2 * third,
                  side + tile + step * 136);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing

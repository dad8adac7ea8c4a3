// Programs one after the other, and the memory between them.
#include "compiler/tile/sequence.h"

#include <functional>

#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

/// C = 2 * (A in rows of 8): the first program copies, the second adds.
tile::Sequence copied_and_added() {
  tile::Sequence sequence;
  const tile::Program copy =
      tile::parse(R"(tile copies[n](A: float32[n, 6], T: float32[n, 6] rows by 8 output) {
  blocks i: n by 4, j: 6 by 8
  view v0 = A[4, 8]
  view v1 = T[4, 8]
  t0 = load v0[i, j]
  store v1[i, j] = t0
})");
  const tile::Program add =
      tile::parse(R"(tile adds[n](T: float32[n, 6] rows by 8, C: float32[n, 6] output) {
  blocks i: n by 4, j: 6 by 8
  view v0 = T[4, 8]
  view v1 = C[4, 8]
  t0 = load v0[i, j]
  t1 = add t0, t0
  store v1[i, j] = t1
})");
  sequence.tensors = {copy.parameters[0], add.parameters[1], copy.parameters[1]};
  sequence.tensors[2].is_output = false;
  sequence.given = 2;
  sequence.steps = {{copy, {0, 2}}, {add, {2, 1}}};
  return sequence;
}

TEST(TileSequence, ALaterProgramReadsWhatAnEarlierOneLeft) {
  const tile::Sequence sequence = copied_and_added();
  verify(sequence);
  HostTensor a = zeros(DType::Float32, {5, 6});
  for (int64_t i = 0; i < 30; ++i)
    language::write_element(a, i,
                            language::Scalar::of_float(DType::Float32, static_cast<double>(i)));
  const std::vector<HostTensor> outputs = tile::interpret(sequence, {{5}}, {{a}});
  ASSERT_EQ(outputs.size(), 1u);
  for (int64_t i = 0; i < 30; ++i)
    EXPECT_EQ(language::read_element(outputs[0], i).floating, static_cast<double>(2 * i));
}

TEST(TileSequence, WhatIsLeftTakesItsRowsWithTheirGaps) {
  const tile::Sequence sequence = copied_and_added();
  const int64_t sizes[] = {5};
  EXPECT_EQ(workspace_bytes(sequence).evaluate(sizes), 5 * 8 * 4);
  EXPECT_EQ(workspace_bytes(tile::alone(sequence.last())).evaluate(sizes), 0);
}

/// Rows of n elements, which begin at multiples of 8 in the copy.
tile::Sequence copied_where_uneven() {
  tile::Sequence sequence = copied_and_added();
  for (tile::Parameter* tensor :
       {&sequence.tensors[0], &sequence.tensors[1], &sequence.tensors[2],
        &sequence.steps[0].program.parameters[0], &sequence.steps[0].program.parameters[1],
        &sequence.steps[1].program.parameters[0], &sequence.steps[1].program.parameters[1]})
    tensor->shape[1] = {.constant = 0, .size = 0};
  for (tile::Sequence::Step& step : sequence.steps)
    step.program.axes[1].extent = {.constant = 0, .size = 0};
  sequence.steps[0].is_spared = true;
  return sequence;
}

TEST(TileSequence, ACopyIsSparedWhereRowsAreEven) {
  const tile::Sequence sequence = copied_where_uneven();
  verify(sequence);
  for (const int64_t n : {7, 8}) {
    const int64_t sizes[] = {n};
    const bool is_even = n == 8;
    EXPECT_EQ(block_count(sequence.steps[0]).evaluate(sizes), is_even ? 0 : 2);
    EXPECT_EQ(workspace_bytes(sequence).evaluate(sizes), is_even ? 0 : 7 * 8 * 4);
    HostTensor a = zeros(DType::Float32, {n, n});
    for (int64_t i = 0; i < n * n; ++i)
      language::write_element(a, i,
                              language::Scalar::of_float(DType::Float32, static_cast<double>(i)));
    const std::vector<HostTensor> outputs = tile::interpret(sequence, sizes, {{a}});
    ASSERT_EQ(outputs.size(), 1u);
    for (int64_t i = 0; i < n * n; ++i)
      EXPECT_EQ(language::read_element(outputs[0], i).floating, static_cast<double>(2 * i));
  }
}

TEST(TileSequence, ThatAsksForEvenRowsIsForCallsThatHaveThem) {
  tile::Sequence sequence = tile::alone(copied_where_uneven().last());
  const std::vector<std::string> names = {"n"};
  EXPECT_EQ(condition_of(sequence).describe(names), "n < 268435456 && floormod(n, 8) == 0");
}

struct Breach {
  std::function<void(tile::Sequence&)> make;
  std::string_view message;
};

TEST(TileSequence, RefusesEachBreachOfARule) {
  const Breach breaches[] = {
      {[](tile::Sequence& s) { std::swap(s.steps[0], s.steps[1]); },
       "T is read before it is stored"},
      {[](tile::Sequence& s) { s.steps.pop_back(); }, "C is not stored"},
      {[](tile::Sequence& s) { s.steps.push_back(s.steps[0]); },
       "T is stored to, which is an input or was stored before"},
      {[](tile::Sequence& s) { s.steps[0].tensors[1] = 0; }, "T does not lie in memory as A does"},
      {[](tile::Sequence& s) { s.steps[1].tensors = {2}; },
       "program 1 has 2 parameters, but 1 tensors"},
      {[](tile::Sequence& s) { s.steps[1].tensors[1] = 3; }, "there is no tensor 3 for C"},
      {[](tile::Sequence& s) { s.tensors[0].type = DType::Int32; },
       "A does not lie in memory as A does"},
      {[](tile::Sequence& s) { s.steps[0].is_spared = true; },
       "copies is spared, and is no copy to rows that begin elsewhere"},
      {[](tile::Sequence& s) { s.tensors[1].is_output = false; },
       "C is stored to, which is an input or was stored before"},
  };
  for (const Breach& breach : breaches) {
    tile::Sequence sequence = copied_and_added();
    breach.make(sequence);
    const Error error =
        expect_error([&] { verify(sequence); }, ErrorKind::Internal, breach.message);
    EXPECT_EQ(error.reason(), "TILE_PROGRAM");
  }
}

}  // namespace
}  // namespace kiln::testing

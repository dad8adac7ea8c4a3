#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const note_slow_loops = pass_named("note_slow_loops").run;

std::vector<std::string> notes_of(std::string_view text) {
  expect_unchanged(note_slow_loops, text);
  return run_pass(note_slow_loops, text).notes;
}

using Notes = std::vector<std::string>;

TEST(NoteSlowLoops, NamesWhatEachIterationWaitsFor) {
  EXPECT_EQ(
      notes_of(R"(fn f(A: float32[65536], C: float32[65537]) {
                     for i in 0..65536 { C[i + 1] = C[i]*A[i] } })"),
      (Notes{"i runs one element after the other, 65536 times: each needs what the one before "
             "it stored in C"}));
  EXPECT_EQ(notes_of(R"(fn f(A: float32[m, n], C: float32[m, n + 1]) {
                     for r in 0..m parallel { for i in 0..n {
                       C[r*(n + 1) + i + 1] = C[r*(n + 1) + i] + A[r*n + i] } } })"),
            (Notes{"i runs one element after the other: each needs what the one before it stored "
                   "in C"}));
}

TEST(NoteSlowLoops, NamesWhatCouldBeVectors) {
  EXPECT_EQ(notes_of(R"(fn f(A: float32[500000, 3], C: float32[500000, 3]) {
                     for i in 0..500000 parallel { for p in 0..3 {
                       C[i*3 + p] = A[i*3 + p]*2.0 } } })"),
            (Notes{"p runs one element at a time, though none needs another: vectorize it, or a "
                   "loop along which C lies side by side"}));
  // In place: each iteration has an element of its own.
  EXPECT_EQ(notes_of(R"(fn f(A: float32[n, 1024], C: float32[n, 1024]) {
                     for i in 0..n { for j in 0..1024 {
                       C[i*1024 + j] = C[i*1024 + j]*A[i*1024 + j] } } })"),
            (Notes{"j runs one element at a time, though none needs another: vectorize it, or a "
                   "loop along which C lies side by side"}));
}

TEST(NoteSlowLoops, LeavesAloneWhatIsShortOrInVectors) {
  EXPECT_EQ(notes_of(R"(fn f(A: float32[64], C: float32[65]) {
                     for i in 0..64 { C[i + 1] = C[i]*A[i] } })"),
            Notes{});
  EXPECT_EQ(notes_of(R"(fn f(A: float32[n, 16], C: float32[n + 1, 16]) { for t in 0..n {
                     C[ramp(t*16 + 16, 1, 16)] = C[ramp(t*16, 1, 16)] + A[ramp(t*16, 1, 16)] } })"),
            Notes{});
  EXPECT_EQ(notes_of(R"(fn f(A: float32[n], C: float32[n]) {
                     for i in 0..n { C[i] = A[i]*2.0 } })"),
            Notes{});
  // In place: each iteration has an element of its own.
  EXPECT_EQ(notes_of(R"(fn f(A: float32[n], C: float32[n]) {
                     for i in 0..n { C[i] = C[i]*A[i] } })"),
            Notes{});
  EXPECT_EQ(notes_of(R"(fn f(I: int64[n], C: int64[n]) {
                     for i in 0..n { C[0] = C[0] + I[i] } })"),
            Notes{});
}

TEST(NoteSlowLoops, NamesWhatVectorsReadApart) {
  EXPECT_EQ(notes_of(R"(fn f(A: float32[4096, 1024], C: float32[1024, 4096]) {
                     for i in 0..262144 { C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1024, 16)] } })"),
            (Notes{"A is read 1024 elements apart: each lane of a vector is a load of its own; "
                   "vectorize a loop along which A lies side by side"}));
  EXPECT_EQ(notes_of(R"(fn f(A: float32[m, n], C: float32[n, m]) {
                     for j in 0..n { for i in 0..floordiv(m, 16) {
                       C[ramp(j*m + i*16, 1, 16)] = A[ramp(i*16*n + j, n, 16)] } } })"),
            (Notes{"A is read n elements apart: each lane of a vector is a load of its own; "
                   "vectorize a loop along which A lies side by side"}));
}

TEST(NoteSlowLoops, LeavesAloneWhatLiesInOneLineOrIsReadSeldom) {
  EXPECT_EQ(notes_of(R"(fn f(A: float32[131072], C: float32[65536]) {
                     for i in 0..4096 { C[ramp(i*16, 1, 16)] = A[ramp(i*32, 2, 16)] } })"),
            Notes{});
  EXPECT_EQ(notes_of(R"(fn f(A: float32[16, 1024], C: float32[16]) {
                     C[ramp(0, 1, 16)] = A[ramp(0, 1024, 16)] })"),
            Notes{});
}

}  // namespace
}  // namespace kiln::testing

#include "tests/language/wire.h"

namespace kiln::language {
namespace {

using testing::expect_error;

constexpr const char* kScatter =
    "kernel k(B: float32[n, d], j: int64[m], X: float32[m, d]) -> (S: float32[n, d]) {\n"
    "  S = scatter_add[r < m, c < d](B, j[r], c, X[r, c])\n"
    "}";

constexpr const char* kSumOfChain =
    "kernel k(A: float32[n, l], p: int64[n]) -> (C: float32[n]) {\n"
    "  B: float32[n]\n"
    "  B[i] = A[i, 0]\n"
    "  C[j] = B[j] + sum[k < l](A[j, k])\n"
    "}";

constexpr const char* kScan =
    "kernel k(X: float32[m, n]) -> (S: float32[m, n], C: float32[n]) {\n"
    "  scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }\n"
    "  C[j] = sum[k < m](S[k, j])\n"
    "}";

constexpr const char* kReducer =
    "kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
    "  reducer r(a: float32, b) = a + b identity 0\n"
    "  C[i] = r[k < l](A[i, k])\n"
    "}";

v1::Placeholder& placeholder(Wire& wire, std::string_view name) {
  return *wire.definition.mutable_stages(static_cast<int>(wire.stage(name)))->mutable_placeholder();
}

v1::Scatter& scatter(Wire& wire) {
  return *wire.definition.mutable_stages(static_cast<int>(wire.stage("S")))->mutable_scatter();
}

/// The first expression that is a parameter of a reducer.
v1::ReducerParameter& parameter(Wire& wire) {
  for (v1::Expression& expression : *wire.definition.mutable_expressions()) {
    if (expression.has_parameter()) return *expression.mutable_parameter();
  }
  ADD_FAILURE() << "no parameter";
  return *wire.definition.add_expressions()->mutable_parameter();
}

uint32_t time_axis(const Wire& wire) {
  for (int i = 0; i < wire.definition.axes_size(); ++i) {
    if (wire.definition.axes(i).kind() == v1::AXIS_KIND_TIME) return static_cast<uint32_t>(i);
  }
  ADD_FAILURE() << "no time axis";
  return 0;
}

TEST(DecodeStages, ChecksShapesAndBounds) {
  const Case table[] = {
      {kSumOfChain,
       [](Wire& w) { placeholder(w, "A").set_shape(0, w.integer(4, v1::DATA_TYPE_INT32)); },
       "placeholder A: dimension 0 is int32, but must be int64"},
      {kSumOfChain,
       [](Wire& w) {
         w.definition.mutable_axes(static_cast<int>(w.axis("k")))->set_extent(w.axis_use("i"));
       },
       "the bounds of reduce axis k use axis i, which is not outside of it in C"},
      {kSumOfChain,
       [](Wire& w) {
         const uint32_t first = w.read("p", {w.integer(0)});
         w.definition.mutable_axes(static_cast<int>(w.axis("i")))->set_extent(first);
       },
       "the shape of B reads a tensor; shapes may use sizes only"},
  };
  for (const Case& test : table)
    expect_refused(test);
}

TEST(DecodeStages, ChecksScatters) {
  const Case table[] = {
      {kScatter,
       [](Wire& w) {
         w.definition.mutable_axes(static_cast<int>(w.axis("r")))->set_minimum(w.integer(1));
       },
       "axis r of S starts at 1; the axes of a scatter start at 0"},
      {kScatter, [](Wire& w) { scatter(w).add_indices(scatter(w).indices(0)); },
       "B has 2 dimensions, but S scatters to it with 3 indices"},
      {kScatter, [](Wire& w) { scatter(w).set_indices(0, w.integer(1, v1::DATA_TYPE_INT32)); },
       "index 0 of scatter S is int32, but must be int64; cast it"},
      {kScatter, [](Wire& w) { scatter(w).set_update(w.integer(1, v1::DATA_TYPE_INT32)); },
       "the update of scatter S is int32, but its base B is float32; cast it"},
      {kScatter, [](Wire& w) { scatter(w).set_combiner("mul"); },
       "S combines by mul; a scatter combines by add, min or max, or replaces"},
      {kScatter,
       [](Wire& w) {
         scatter(w).set_update(w.read("S", {w.axis_use("r"), w.axis_use("c")}));
       },
       "expression 19 reads S before its update stands"},
  };
  for (const Case& test : table)
    expect_refused(test);
}

TEST(DecodeStages, ChecksReducers) {
  const Case table[] = {
      {kReducer, [](Wire& w) { parameter(w).set_position(9); },
       "reducer r uses parameter 9, but has 2"},
      {"kernel k(A: float32[n, l]) -> (C: float32[n]) {\n"
       "  reducer r(a: float32, b) = float32(int32(a)) + b identity 0\n"
       "  C[i] = r[k < l](A[i, k])\n"
       "}",
       [](Wire& w) { parameter(w).set_type(v1::DATA_TYPE_FLOAT64); },
       "reducer r uses parameter 0 as float64, but it is float32"},
  };
  for (const Case& test : table)
    expect_refused(test);
}

TEST(DecodeStages, TellsTheTimeOfAScanFromOtherAxes) {
  const Case table[] = {
      {kScan,
       [](Wire& w) {
         v1::Expression time;
         time.set_axis(time_axis(w));
         w.set_body("C", w.read("X", {w.add(time), w.axis_use("j")}));
       },
       "C uses S.idx, the time axis of a scan; use the first axis of C itself"},
      {kScan,
       [](Wire& w) {
         const uint32_t value = w.read("X", {w.integer(0), w.axis_use("j")});
         w.set_body("C", w.reduce("sum", value, {time_axis(w)}));
       },
       "sum: S.idx is the time axis of a scan; make an axis for it with reduce_axis"},
  };
  for (const Case& test : table)
    expect_refused(test);
}

TEST(DecodeStages, RefusesAStageThatReadsItself) {
  expect_refused(
      {"kernel t(A: float32[n]) -> (P: float32[n], Q: float32[n]) {\n"
       "  P[i], Q[i] = A[i] + 1, A[i] * 2\n"
       "}",
       [](Wire& w) {
         v1::Expression read;
         read.mutable_read()->mutable_tensor()->set_stage(w.stage("P, Q"));
         read.mutable_read()->add_indices(w.axis_use("i"));
         w.compute("P, Q").set_bodies(1, w.add(read));
       },
       "P, Q reads itself; a recurrence is a scan"});
}

TEST(DecodeStages, RefusesAStepOnAnAxisThatNoStageUses) {
  Wire wire(kSumOfChain);
  const v1::Axis unused = wire.definition.axes(0);
  *wire.definition.add_axes() = unused;
  const Kernel kernel = wire.decode();
  v1::Schedule schedule;
  v1::Step& step = *schedule.add_steps();
  step.set_name("split");
  step.set_stage(wire.stage("C"));
  step.add_axes(static_cast<uint32_t>(wire.definition.axes_size()) - 1);
  step.add_factors(4);
  expect_error([&] { decode_schedule(schedule, kernel); }, ErrorKind::InvalidArgument,
               "axis i3 belongs to no stage");
}

}  // namespace
}  // namespace kiln::language

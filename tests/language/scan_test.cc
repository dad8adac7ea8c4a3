#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "tests/language/wire.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::language::scan {
namespace {

using testing::expect_error;

struct Case {
  const char* text;
  const char* message;
  ErrorKind kind = ErrorKind::InvalidArgument;
};

void expect_refused(const Case& test) {
  SCOPED_TRACE(test.text);
  expect_error([&] { parse_text(test.text, "scan.kiln"); }, test.kind, test.message);
}

/// A scan of X: float32[m, n] over a cell.
std::string cell(std::string_view init, std::string_view steps) {
  return "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n  scan t {\n    " +
         std::string(init) + "\n    " + std::string(steps) + "\n  }\n}";
}

TEST(Scan, ReadsItsStateAtEarlierStepsOnly) {
  const std::pair<std::string, const char*> table[] = {
      {cell("S[0, i] = X[0, i]", "S[t, i] = S[t, i] + 1"),
       "scan S: update reads state at t (current step); it may read only t-1"},
      {cell("S[0, i] = X[0, i]", "S[t, i] = S[t + 1, i]"),
       "scan S: update reads state at t + 1 (a later step); it may read only t-1"},
      {cell("S[0, i] = X[0, i]", "S[t, i] = S[t - 2, i]"),
       "scan S: update reads state 2 steps back but init gives 1"},
      {cell("S[t < 3, i] = X[t, i]", "S[t, i] = S[t, i]"),
       "scan S: update reads state at t (current step); it may read only t-1 .. t-3"},
      {cell("S[t < 3, i] = X[t, i]", "S[t, i] = S[t - 4, i]"),
       "scan S: update reads state 4 steps back but init gives 3"},
      {cell("S[0, i] = X[0, i]", "S[t, i] = S[0, i]"),
       "scan S: update reads state at 0; it may read only t-1"},
      {cell("S[0, i] = X[0, i]", "S[t, i] = S[i - 1, i]"),
       "scan S: update reads state at i - 1; it may read only t-1"},
      {cell("S[0, i] = X[0, i]", "S[t, i] = sum[k < m](S[k, i])"),
       "scan S: update reads state at k; it may read only t-1"},
      {cell("S[0, i] = X[0, i]", "D: float32[m, n] D[t, i] = S[t, i] S[t, i] = D[t, i]"),
       "scan S: D reads state at t (current step); it may read only t-1"},
  };
  for (const auto& [text, message] : table) {
    expect_refused({text.c_str(), message});
  }
}

TEST(Scan, NamesTheStateAmongSeveral) {
  expect_refused(
      {"kernel k(X: float32[m, n]) -> (S: float32[m, n], R: float32[m]) {\n"
       "  scan t {\n"
       "    S[0, i] = X[0, i]  R[0] = 0\n"
       "    S[t, i] = S[t - 1, i] + R[t]\n"
       "    R[t] = R[t - 1]\n"
       "  }\n"
       "}",
       "scan S, R: update 0 reads state 1 at t (current step); it may read only t-1"});
}

TEST(Scan, CellsMayReadEarlierResultsOfTheSameStep) {
  testing::kernel_of(
      "kernel k(X: float32[m, n]) -> (S: float32[m, n], R: float32[m, n]) {\n"
      "  scan t {\n"
      "    S[0, i] = X[0, i]  R[0, i] = 0\n"
      "    S[t, i] = S[t - 1, i] + X[t, i]\n"
      "    R[t, i] = R[t - 1, i] + S[t, i]\n"
      "  }\n"
      "}");
}

constexpr const char* kExplicit =
    "kernel k(X: float32[m, n], H: float32[1, n]) -> (s_scan: float32[m, n]) {\n";

TEST(Scan, AgreesInShapeAndType) {
  const auto with = [](const char* init, const char* state, const char* update) {
    return "kernel k(X: float32[m, n], H: " + std::string(init) +
           ") -> (s_scan: float32[m, n]) {\n  s_state: state " + state + "\n  s_update: " + update +
           "\n  s_update[t, i] = 0\n  s_scan = scan(H, s_update, s_state)\n}";
  };
  const std::pair<std::string, const char*> table[] = {
      {with("float32[1, n]", "float32[m, n]", "float32[n, m]"),
       "update of scan s_scan has shape (n, m) but its state has shape (m, n)"},
      {with("float32[1, 3]", "float32[m, n]", "float32[m, n]"),
       "init of scan s_scan has shape (1, 3) but its state has shape (m, n); dimension 1 must "
       "agree"},
      {with("float32[1]", "float32[m, n]", "float32[m, n]"),
       "init of scan s_scan has shape (1,) but its state has shape (m, n); its time dimension is "
       "missing"},
      {with("float64[1, n]", "float32[m, n]", "float32[m, n]"),
       "init of scan s_scan is float64 but its state is float32"},
      {with("float32[1, n]", "float32[m, n]", "int32[m, n]"),
       "update of scan s_scan is int32 but its state is float32"},
      {with("float32[0, n]", "float32[m, n]", "float32[m, n]"),
       "init of scan s_scan has 0 steps, but must have at least 1"},
  };
  for (const auto& [text, message] : table) {
    expect_refused({text.c_str(), message});
  }
  const std::string symbolic = with("float32[n, n]", "float32[m, n]", "float32[m, n]");
  expect_refused({symbolic.c_str(),
                  "init of scan s_scan has n steps; the number of initial steps must be a constant",
                  ErrorKind::Unsupported});
}

TEST(Scan, ComparesSymbolicShapesByMeaning) {
  testing::kernel_of(
      "kernel k(H: float32[1], X: float32[m + 1]) -> (S: float32[m + 1]) {\n"
      "  s: state float32[1 + m]\n"
      "  u: float32[m + 2 - 1]\n"
      "  u[t] = s[t - 1] + X[t]\n"
      "  S = scan(H, u, s)\n"
      "}");
}

TEST(Scan, KeepsItsPartsToItself) {
  const std::string start = std::string(kExplicit) +
                            "  s_state: state float32[m, n]\n"
                            "  s_update: float32[m, n]\n"
                            "  s_update[t, i] = s_state[t - 1, i] + X[t, i]\n";
  const std::string scan = "  s_scan = scan(H, s_update, s_state)\n";
  const std::string after = "  D: float32[n]\n";
  const std::pair<std::string, const char*> table[] = {
      {start + scan + after + "  D[i] = s_state[1, i]\n}",
       "D reads s_state, the state of scan s_scan; read s_scan instead"},
      {start + scan + after + "  D[i] = s_update[1, i]\n}",
       "D reads s_update, a part of the cell of scan s_scan; read s_scan instead"},
      {start + "  s_scan = scan(H, s_state, s_state)\n}",
       "the update of scan s_scan must be computed, but s_state is a placeholder"},
      {start + "  s_scan = scan(H, s_update, s_update)\n}",
       "the state of scan s_scan must be a placeholder, but s_update is computed"},
  };
  for (const auto& [text, message] : table) {
    expect_refused({text.c_str(), message});
  }
}

TEST(Scan, CannotGiveItsPartsAway) {
  const TextKernel text = testing::test_kernel("cumsum");
  v1::Definition wire = encode(text.kernel.definition);
  const auto& stages = text.kernel.names.stages;
  const auto at = [&](std::string_view name) {
    return static_cast<uint32_t>(std::find(stages.begin(), stages.end(), name) - stages.begin());
  };
  wire.add_parameters()->set_stage(at("S.update"));
  expect_error(
      [&] { decode(wire, encode(text.kernel.names)); }, ErrorKind::InvalidArgument,
      "S.update is a part of the cell of scan S and cannot be an argument; take S instead");
  wire.mutable_parameters(2)->set_stage(at("S.state"));
  expect_error([&] { decode(wire, encode(text.kernel.names)); }, ErrorKind::InvalidArgument,
               "S.state is the state of scan S and cannot be an argument; take S instead");
}

TEST(Scan, ChecksTheTimeAxis) {
  const TextKernel text = testing::test_kernel("cumsum");
  const auto spoilt = [&](auto spoil) {
    v1::Definition wire = encode(text.kernel.definition);
    for (v1::Axis& axis : *wire.mutable_axes()) {
      if (axis.kind() == v1::AXIS_KIND_TIME) spoil(wire, axis);
    }
    return [wire, names = encode(text.kernel.names)] { decode(wire, names); };
  };
  expect_error(spoilt([](v1::Definition&, v1::Axis& axis) { axis.set_extent(axis.minimum()); }),
               ErrorKind::InvalidArgument,
               "scan S takes 1 steps after its 1 initial ones, but update has m");
  expect_error(spoilt([](v1::Definition& wire, v1::Axis& axis) {
                 v1::Expression& two = *wire.add_expressions();
                 two.mutable_integer()->set_type(v1::DATA_TYPE_INT64);
                 two.mutable_integer()->set_value(2);
                 axis.set_minimum(static_cast<uint32_t>(wire.expressions_size()) - 1);
               }),
               ErrorKind::InvalidArgument, "scan S starts at step 2 but init gives 1");
  expect_error(spoilt([](v1::Definition& wire, v1::Axis&) {
                 for (v1::Stage& stage : *wire.mutable_stages()) {
                   if (stage.has_scan()) *stage.mutable_scan()->add_init() = stage.scan().init(0);
                 }
               }),
               ErrorKind::InvalidArgument,
               "scan S has 2 init, 1 update and 1 state; their numbers must be the same");
  expect_error(spoilt([](v1::Definition& wire, v1::Axis&) {
                 for (v1::Stage& stage : *wire.mutable_stages()) {
                   if (!stage.has_scan()) continue;
                   stage.mutable_scan()->clear_init();
                   stage.mutable_scan()->clear_update();
                   stage.mutable_scan()->clear_state();
                 }
               }),
               ErrorKind::InvalidArgument, "scan S has no state");
}

/// A scan whose state and update have no dimensions: the text form has none.
TEST(Scan, NeedsADimensionForTime) {
  Wire wire(cell("S[0, i] = X[0, i]", "S[t, i] = X[t, i]"));
  v1::Scan& scan = wire.scan("S");
  const auto state = static_cast<int>(scan.state(0).stage());
  wire.definition.mutable_stages(state)->mutable_placeholder()->clear_shape();
  *scan.mutable_update(0) = scan.state(0);
  expect_error([&] { wire.decode(); }, ErrorKind::InvalidArgument,
               "state of scan S has no dimensions, but must have one for time");
}

TEST(Scan, RefusesAScanInsideAScan) {
  expect_refused(
      {"kernel k(X: float32[m], H: float32[1]) -> (S: float32[m]) {\n"
       "  a: state float32[m]  b: state float32[m]\n"
       "  u: float32[m]  v: float32[m]  T: float32[m]\n"
       "  u[t] = a[t - 1] + b[t - 1]\n"
       "  v[t] = b[t - 1] + X[t]\n"
       "  T = scan(H, v, b)\n"
       "  S = scan(H, u, a)\n"
       "}",
       "u belongs to the cells of scan S and of scan T; a stage can be part of one only",
       ErrorKind::Unsupported});
}

}  // namespace
}  // namespace kiln::language::scan

#include "compiler/language/wire/decode.h"

#include "compiler/language/state/schedule_state.h"
#include "tests/language/wire.h"

namespace kiln::language {
namespace {

using testing::expect_error;
using testing::kernel_of;

constexpr const char* kMatmul =
    "kernel mm(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {\n"
    "  C[i, j] = sum[k < l](A[i, k] * B[k, j])\n"
    "}";

constexpr const char* kChain =
    "kernel chain(A: float32[n]) -> (C: float32[n]) {\n"
    "  B: float32[n]\n"
    "  B[i] = A[i] + 1\n"
    "  C[j] = B[j] * 2\n"
    "}";

TEST(Decode, AcceptsWhatEncodeMakes) {
  for (const char* file : {"cumsum", "two_stage_scan", "two_state_scan", "fibonacci", "matmul",
                           "softmax", "conv2d", "elementwise"}) {
    for (const TextKernel& text : parse_text(testing::kernel_file(file), file)) {
      const Wire wire(text);
      const Kernel again = wire.decode();
      EXPECT_EQ(encode(again.definition).SerializeAsString(), wire.definition.SerializeAsString());
      EXPECT_EQ(encode(again.names).SerializeAsString(), wire.names.SerializeAsString());
    }
  }
}

TEST(Decode, TrustsNoIdFromTheWire) {
  const Case table[] = {
      {kChain, [](Wire& w) { w.definition.mutable_axes(0)->set_extent(99); },
       "axis i refers to expression 99, but there are 13"},
      {kChain,
       [](Wire& w) { w.definition.mutable_axes(0)->set_kind(static_cast<v1::AxisKind>(7)); },
       "axis i has the unknown kind 7"},
      {kChain, [](Wire& w) { w.definition.mutable_stages(0)->clear_kind(); },
       "stage A is neither a placeholder nor a compute, a scan or a scatter"},
      {kChain, [](Wire& w) { w.compute("C").set_axes(0, 9); },
       "C refers to axis 9, but there are 2"},
      {kChain, [](Wire& w) { w.compute("C").clear_bodies(); }, "C computes nothing"},
      {kChain, [](Wire& w) { w.definition.mutable_parameters(1)->set_stage(3); },
       "the argument list refers to stage 3, but only 3 stages stand before it"},
      {kChain, [](Wire& w) { w.definition.mutable_parameters(1)->set_output(1); },
       "the argument list refers to output 1 of C, which has 1"},
      {kChain, [](Wire& w) { w.definition.mutable_expressions(3)->clear_kind(); },
       "expression 3 is empty"},
      {kChain, [](Wire& w) { w.definition.mutable_expressions(3)->set_axis(5); },
       "expression 3 refers to axis 5, but there are 2"},
      {kChain, [](Wire& w) { w.definition.mutable_expressions(0)->set_variable(4); },
       "expression 0 refers to size 4, but there are 1"},
      {kChain, [](Wire& w) { w.set_body("C", w.apply("negative", {99})); },
       "expression 13 refers to expression 99, but only earlier ones exist"},
      {kChain, [](Wire& w) { w.set_body("B", w.read("C", {w.axis_use("i")})); },
       "expression 10 reads B before its body stands"},
      {kChain,
       [](Wire& w) {
         w.definition.mutable_stages()->SwapElements(1, 2);
         w.names.mutable_stages()->SwapElements(1, 2);
         w.definition.mutable_parameters(1)->set_stage(1);
         w.definition.mutable_expressions(10)->mutable_read()->mutable_tensor()->set_stage(2);
       },
       "C reads B, a later stage"},
      {kChain,
       [](Wire& w) {
         v1::Expression& read = *w.definition.mutable_expressions(3);
         read.mutable_read()->mutable_tensor()->set_stage(w.stage("C"));
       },
       "expression 3 reads C before its body stands"},
      {kChain, [](Wire& w) { w.definition.mutable_stages(0)->mutable_placeholder()->clear_type(); },
       "placeholder A has the unknown type 0"},
  };
  for (const Case& test : table) {
    expect_refused(test);
  }
}

TEST(Decode, HoldsEveryTypeRule) {
  const Case table[] = {
      {kChain,
       [](Wire& w) {
         w.set_body("C", w.apply("addd", {0, 0}));
       },
       "unknown operator addd; did you mean add"},
      {kChain, [](Wire& w) { w.set_body("C", w.apply("add", {0})); },
       "add takes 2 operands, but got 1"},
      {kChain,
       [](Wire& w) {
         const uint32_t i = w.axis_use("j");
         w.set_body("C", w.apply("add", {w.read("A", {i}), i}));
       },
       "add takes numbers of one type, but got float32 and int64"},
      {kChain, [](Wire& w) { w.integer(300, v1::DATA_TYPE_INT8); }, "300 does not fit int8"},
      {kChain, [](Wire& w) { w.integer(-1, v1::DATA_TYPE_UINT8); }, "-1 does not fit uint8"},
      {kChain, [](Wire& w) { w.integer(2, v1::DATA_TYPE_BOOL); }, "2 does not fit bool"},
      {kChain, [](Wire& w) { w.integer(1, v1::DATA_TYPE_FLOAT32); },
       "an integer constant cannot be float32"},
      {kChain, [](Wire& w) { w.floating(1e39, v1::DATA_TYPE_FLOAT32); },
       "1e+39 does not fit float32"},
      {kChain, [](Wire& w) { w.floating(-480, v1::DATA_TYPE_FLOAT8_E4M3FN); },
       "-480 does not fit float8_e4m3fn"},
      {kChain, [](Wire& w) { w.set_body("C", w.read("A", {})); },
       "A has 1 dimension, but is read with 0 indices"},
      {kChain,
       [](Wire& w) {
         const uint32_t j = w.axis_use("j");
         w.set_body("C", w.read("A", {w.read("A", {j})}));
       },
       "index 0 of A is float32, but must be int64; cast it"},
      {kMatmul, [](Wire& w) { w.set_body("C", w.reduce("avg", 0, {w.axis("k")})); },
       "unknown reducer avg; known: sum, prod, min, max, any, all"},
      {kMatmul, [](Wire& w) { w.set_body("C", w.reduce("sum", 0, {})); },
       "sum reduces over no axis"},
      {kMatmul,
       [](Wire& w) {
         w.set_body("C", w.reduce("sum", 0, {w.axis("k"), w.axis("k")}));
       },
       "sum reduces over k twice"},
      {kMatmul, [](Wire& w) { w.set_body("C", w.reduce("sum", 0, {w.axis("i")})); },
       "sum: i is a data axis of C; make one with reduce_axis"},
  };
  for (const Case& test : table) {
    expect_refused(test);
  }
}

TEST(Decode, KnowsWhereEachAxisBelongs) {
  const Case table[] = {
      {kMatmul,
       [](Wire& w) {
         const uint32_t k = w.axis_use("k");
         w.set_body("C", w.read("A", {k, k}));
       },
       "reduce axis k is used in C but no reducer reduces over it"},
      {kChain, [](Wire& w) { w.set_body("C", w.read("A", {w.axis_use("i")})); },
       "C uses axis i, which belongs to B"},
      {kChain, [](Wire& w) { w.compute("C").set_axes(0, w.axis("i")); },
       "data axis i is used by B and by C; each needs one of its own"},
      {kMatmul, [](Wire& w) { w.compute("C").set_axes(0, w.axis("k")); },
       "axis k of C is a reduce axis, but must be a data axis"},
      {kChain, [](Wire& w) { w.definition.mutable_axes(0)->set_minimum(w.integer(1)); },
       "axis i of B starts at 1; the axes of a tensor start at 0"},
      {kChain, [](Wire& w) { w.definition.mutable_axes(0)->set_extent(w.integer(-4)); },
       "B: dimension 0 is -4, but must not be negative"},
      {kChain,
       [](Wire& w) {
         w.definition.mutable_stages(0)->mutable_placeholder()->set_shape(0, w.integer(-3));
       },
       "placeholder A: dimension 0 is -3, but must not be negative"},
      {kChain,
       [](Wire& w) {
         w.definition.mutable_stages(0)->mutable_placeholder()->set_shape(0, w.axis_use("i"));
       },
       "the shape of A uses axis i; shapes may use sizes only"},
      {kChain, [](Wire& w) { w.definition.mutable_axes(1)->set_extent(w.axis_use("i")); },
       "the shape of C uses axis i; shapes may use sizes only"},
      {kChain, [](Wire& w) { w.definition.mutable_axes(0)->set_extent(w.axis_use("i")); },
       "the bounds of axis i use axis i, which does not stand before it"},
      {kChain,
       [](Wire& w) { w.definition.mutable_axes(0)->set_extent(w.integer(4, v1::DATA_TYPE_INT32)); },
       "the bounds of axis i are int32, but must be int64"},
      {kMatmul,
       [](Wire& w) {
         w.definition.mutable_axes(static_cast<int>(w.axis("k")))
             ->set_extent(w.apply("floordiv", {w.read("A", {0, 0}), 0}));
       },
       "floordiv takes numbers of one type, but got float32 and int64"},
  };
  for (const Case& test : table) {
    expect_refused(test);
  }
}

TEST(Decode, ProvesConstantIndicesInRange) {
  constexpr const char* kFixed = "kernel f(A: float32[5]) -> (C: float32[5]) { C[i] = A[i] }";
  const Case table[] = {
      {kFixed, [](Wire& w) { w.set_body("C", w.read("A", {w.integer(5)})); },
       "C reads A at index 5 of dimension 0, which has 5 elements"},
      {kFixed, [](Wire& w) { w.set_body("C", w.read("A", {w.integer(-1)})); },
       "C reads A at index -1 of dimension 0, which has 5 elements"},
      {kChain, [](Wire& w) { w.set_body("C", w.read("A", {w.integer(-2)})); },
       "C reads A at index -2 of dimension 0, which has n elements"},
  };
  for (const Case& test : table) {
    expect_refused(test);
  }
  kernel_of(
      "kernel f(A: float32[5]) -> (C: float32[5]) {\n"
      "  C[i] = if_then_else(i < 3, A[7], 0)\n"  // never computed, for all that is known
      "}");
}

TEST(Decode, ChecksTuples) {
  constexpr const char* kTuple =
      "kernel t(A: float32[n, l]) -> (P: float32[n], Q: float32[n]) {\n"
      "  P[i], Q[i] = sum[k < l](A[i, k]), max[k < l](A[i, k])\n"
      "}";
  expect_refused(
      {kTuple,
       [](Wire& w) {
         const uint32_t zero = w.integer(0);
         w.compute("P, Q").set_bodies(1, w.read("A", {zero, zero}));
       },
       "output 1 of P, Q is not a reduction; a tuple compute is all reductions or none"});
}

TEST(Decode, ChecksTheArguments) {
  const Case table[] = {
      {kChain, [](Wire& w) { w.definition.mutable_parameters()->RemoveLast(); },
       "there is no output among the arguments (A); list a computed tensor, too"},
      {kChain, [](Wire& w) { *w.definition.add_parameters() = w.definition.parameters(0); },
       "A is listed twice among the arguments"},
      {kChain, [](Wire& w) { w.definition.mutable_parameters()->DeleteSubrange(0, 1); },
       "B reads placeholder A, which is not an argument; list A among the arguments"},
  };
  for (const Case& test : table) {
    expect_refused(test);
  }
}

TEST(Decode, SaysWhereTheStageWasWritten) {
  Wire wire(kChain);
  wire.set_body("C", wire.read("A", {wire.axis_use("i")}));
  const Error error = expect_error([&] { wire.decode(); }, ErrorKind::InvalidArgument,
                                   "C uses axis i, which belongs to B");
  EXPECT_EQ(error.location().file, "test.kiln");
  EXPECT_EQ(error.location().line, 4);
}

TEST(Decode, NamesTheStageOfAWrongExpression) {
  Wire wire(kChain);
  wire.set_body("C", wire.apply("exp", {wire.apply("exp", {wire.axis_use("j")})}));
  const Error error = expect_error([&] { wire.decode(); }, ErrorKind::InvalidArgument,
                                   "exp takes floating numbers of one type, but got int64");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"in stage C"});
  EXPECT_EQ(error.location().line, 4);
}

TEST(Decode, HoldsItsLimits) {
  const auto refused = [](const Limits& limits, const char* message) {
    expect_error([&] { Wire(kChain).decode(limits); }, ErrorKind::ResourceExhausted, message);
  };
  refused({.expressions = 3}, "the definition has 13 expressions; the limit is 3");
  refused({.stages = 2}, "the definition has 3 stages; the limit is 2");
  refused({.axes = 1}, "the definition has 2 axes; the limit is 1");
  refused({.depth = 2}, "an expression has 3 levels; the limit is 2");
  refused({.dimensions = 0}, "A has 1 dimensions; the limit is 0");
  refused({.name_bytes = 4}, "a name has 5 bytes; the limit is 4");
}

TEST(Decode, RefusesSharedPartsThatExplodeWhenSpelledOut) {
  Wire wire(kChain);
  uint32_t expr = wire.read("A", {wire.axis_use("j")});
  for (int i = 0; i < 40; ++i) {
    expr = wire.apply("add", {expr, expr});
  }
  wire.set_body("C", expr);
  expect_error([&] { wire.decode(); }, ErrorKind::ResourceExhausted,
               "the bodies up to C have 3298534883331 nodes when shared parts are spelled out; the "
               "limit is 1000000; give large shared parts tensors of their own");
}

TEST(Decode, MakesNamesHarmless) {
  Wire wire(kChain);
  wire.names.set_kernel(std::string("a\0b", 3));
  wire.names.set_stages(0, "x\xff\ny");
  wire.names.set_stages(1, "");
  wire.names.mutable_axes()->Clear();
  const Kernel kernel = wire.decode();
  EXPECT_EQ(kernel.names.kernel, "a_b");
  EXPECT_EQ(kernel.names.stages, (std::vector<std::string>{"x__y", "tensor1", "C"}));
  EXPECT_EQ(kernel.names.axes, (std::vector<std::string>{"i0", "i1"}));
}

TEST(Decode, KeepsStorageOnlyTypes) {
  EXPECT_EQ(kernel_of("kernel f(A: float8_e4m3fn[n]) -> (B: float8_e5m2[n]) {\n"
                      "  B[i] = float8_e5m2(float32(A[i]) * 2)\n"
                      "}")
                .kernel.definition.type_of({0, 0}),
            DType::Float8E4M3FN);
}

}  // namespace
}  // namespace kiln::language

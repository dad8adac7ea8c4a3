#include "tests/errors/cpp/wrong.h"

using kiln::compute, kiln::create_schedule, kiln::Expr, kiln::float32, kiln::placeholder;

namespace {

/// C = (A + 1) * 2 in two stages, of any size, and its schedule.
struct Chain {
  Expr n = kiln::var("n");
  kiln::Tensor A = placeholder({n}, float32, "A");
  kiln::Tensor B = compute({n}, [&](Expr i) { return A(i) + 1; }, {"B", {"i"}});
  kiln::Tensor C = compute({n}, [&](Expr i) { return B(i) * 2; }, {"C", {"i"}});
  kiln::Schedule s = create_schedule(C);
};

/// S[t] = S[t - 1] + X[t], each column on its own.
struct RunningSum {
  Expr m = kiln::var("m");
  Expr n = kiln::var("n");
  kiln::Tensor X = placeholder({m, n}, float32, "X");
  kiln::Tensor state = placeholder({m, n}, float32, "state");
  kiln::Tensor init = compute({1, n}, [&](Expr, Expr i) { return X(0, i); }, {"init", {"t", "i"}});
  kiln::Tensor update = compute({m, n}, [&](Expr t, Expr i) { return state(t - 1, i) + X(t, i); },
                                {"update", {"t", "i"}});
};

}  // namespace

WRONG(split_by_zero) {
  const Chain k;
  k.s[k.C].split(k.C.axis(0), 0);  // <-
}

WRONG(split_of_an_axis_that_was_split) {
  const Chain k;
  k.s[k.C].split(k.C.axis(0), 8);
  k.s[k.C].vectorize(k.C.axis(0));  // <-
}

WRONG(axis_of_another_stage) {
  const Chain k;
  k.s[k.C].parallel(k.B.axis(0));  // <-
}

WRONG(axis_that_a_tensor_has_not) {
  const Chain k;
  k.s[k.C].parallel(k.C.axis(1));  // <-
}

WRONG(stage_of_another_schedule) {
  const Chain k;
  const Chain other;
  k.s[other.C];  // <-
}

WRONG(step_on_an_input) {
  const Chain k;
  k.s[k.A].compute_inline();  // <-
}

WRONG(axes_of_an_input) {
  const Chain k;
  k.s[k.C].parallel(k.A.axis(0));  // <-
}

WRONG(misspelt_thread) {
  const Chain k;
  k.s[k.C].bind(k.C.axis(0), "threadIdx.q");  // <-
}

WRONG(misspelt_memory) {
  const Chain k;
  k.s.cache_read(k.A, "sharedd", {k.B});  // <-
}

WRONG(copy_for_a_stage_that_does_not_read_it) {
  const Chain k;
  k.s.cache_read(k.A, "local", {k.C});  // <-
  kiln::connect().build(k.s, {k.A, k.C});
}

WRONG(vectors_of_any_length) {
  const Chain k;
  k.s[k.C].vectorize(k.C.axis(0));  // <-
  kiln::connect().build(k.s, {k.A, k.C}, {.name = "chain"});
}

WRONG(output_computed_inline) {
  const Chain k;
  k.s[k.C].compute_inline();  // <-
  kiln::connect().build(k.s, {k.A, k.C}, {.name = "chain"});
}

WRONG(time_of_a_scan_in_parallel) {
  const RunningSum k;
  const auto S = kiln::scan(k.init, k.update, k.state, {k.X}, "S");
  const auto s = create_schedule(S);
  s[S].parallel(S.scan_axis());  // <-
  kiln::connect().build(s, {k.X, S}, {.name = "cumsum"});
}

WRONG(scan_axis_of_a_compute) {
  const Chain k;
  k.s[k.C].unroll(k.C.scan_axis());  // <-
}

WRONG(scan_from_an_init_of_another_type) {
  const RunningSum k;
  const auto zero = compute(
      {1, k.n}, [](Expr, Expr) { return kiln::constant(0, kiln::int32); }, "zero");
  kiln::scan(zero, k.update, k.state, {k.X}, "S");  // <-
}

WRONG(scan_that_reads_its_own_step) {
  const RunningSum k;
  const auto step = [&](Expr t, Expr i) { return k.state(t, i) + k.X(t, i); };
  const auto now = compute({k.m, k.n}, step, {"now", {"t", "i"}});  // <-
  const auto S = kiln::scan(k.init, now, k.state, {k.X}, "S");
  kiln::connect().build({k.X, S}, {.name = "cumsum"});
}

WRONG(argument_that_is_missing) {
  const auto A = placeholder({4}, float32, "A");
  const auto B = compute(  // <-
      {4}, [&](Expr i) { return A(i) + 1; }, "B");
  kiln::connect().build({B}, {.name = "add"});
}

WRONG(no_output_among_the_arguments) {
  const Chain k;
  kiln::connect().build({k.A}, {.name = "chain"});  // <-
}

WRONG(same_argument_twice) {
  const Chain k;
  kiln::connect().build({k.A, k.A, k.C}, {.name = "chain"});  // <-
}

WRONG(unknown_target) {
  const Chain k;
  kiln::connect().build({k.A, k.C}, {.target = "opencl"});  // <-
}

WRONG(architecture_given_to_build) {
  const Chain k;
  kiln::connect().build({k.A, k.C}, {.arch = "znver4"});  // <-
}

WRONG(device_that_the_service_lacks) {
  const Chain k;
  kiln::connect().build({k.A, k.C}, {.name = "chain", .target = "cuda"});  // <-
}

WRONG(unknown_pass) {
  const Chain k;
  kiln::connect().lower({k.A, k.C}, {.after = "vectorise_loops"});  // <-
}

WRONG(schedule_saved_to_no_folder) {
  const Chain k;
  k.s.save("/nowhere/chain.kiln");
}

WRONG(shape_of_what_a_step_makes) {
  const Chain k;
  k.s.cache_read(k.A, "local", {k.B}).shape();
}

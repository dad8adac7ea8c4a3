#pragma once

/// The C++ client of Kiln: definitions, schedules, and calls of a daemon that compiles and runs
/// them.
///
///   auto n = kiln::var("n");
///   auto A = kiln::placeholder({n}, kiln::float32, "A");
///   auto B = kiln::compute({n}, [&](kiln::Expr i) { return A(i) + 1; }, "B");
///   auto f = kiln::connect().build({A, B});
///   f(a, b);
#include <kiln/array.h>
#include <kiln/connection.h>
#include <kiln/definition.h>
#include <kiln/elementwise.h>
#include <kiln/error.h>
#include <kiln/expr.h>
#include <kiln/intrinsics.h>
#include <kiln/job.h>
#include <kiln/kernel.h>
#include <kiln/optimizers.h>
#include <kiln/program.h>
#include <kiln/program_builder.h>
#include <kiln/reducer.h>
#include <kiln/schedule.h>
#include <kiln/tensor.h>
#include <kiln/tune.h>
#include <kiln/types.h>

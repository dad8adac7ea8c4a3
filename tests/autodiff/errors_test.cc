#include <gtest/gtest.h>

#include "tests/autodiff/gradient_check.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using autodiff::GradientRequest;

language::Kernel kernel_with(const std::string& text) { return kernel_of(text).kernel; }

language::TensorId tensor_in(const language::Kernel& kernel, const std::string& name) {
  for (language::StageId id = 0; id < kernel.names.stages.size(); ++id) {
    if (kernel.names.stages[id] == name) return {id, 0};
  }
  ADD_FAILURE() << name;
  return {};
}

void refused(const std::string& text, ErrorKind kind, const std::string& sentence) {
  expect_error([&] { gradient_of(kernel_with(text)); }, kind, sentence);
}

TEST(GradientErrors, NothingToDifferentiate) {
  refused("kernel k(X: float32[n]) -> (Y: int32[n]) { Y[i] = int32(X[i]) }",
          ErrorKind::InvalidArgument,
          "k computes no floating tensor, so there is nothing to differentiate");
  refused("kernel k(X: int32[n]) -> (Y: float32[n]) { Y[i] = float32(X[i]) }",
          ErrorKind::InvalidArgument,
          "k takes no floating tensor to differentiate with respect to");
}

TEST(GradientErrors, Requests) {
  const language::Kernel kernel = kernel_with(
      "kernel k(X: float32[n]) -> (Y: float32[n], Z: float32[n]) { Y[i] = X[i]  Z[i] = X[i] }");
  GradientRequest request = autodiff::whole_request(kernel);
  request.identity = true;
  expect_error([&] { autodiff::differentiate(kernel, request); }, ErrorKind::InvalidArgument,
               "k has a Jacobian of one output at a time; give heads for several");
  request.identity = false;
  request.leading = 17;
  expect_error([&] { autodiff::differentiate(kernel, request); }, ErrorKind::ResourceExhausted,
               "heads have 17 leading dimensions; the limit is 16");
}

TEST(GradientErrors, InsideOfAScan) {
  const language::Kernel kernel = kernel_with(
      "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n  P: float32[m, n]\n"
      "  scan t {\n    S[0, i] = X[0, i]\n    P[t, i] = S[t - 1, i] * 2\n"
      "    S[t, i] = P[t, i] + X[t, i]\n  }\n}\n");
  GradientRequest request = autodiff::whole_request(kernel);
  request.inputs = {tensor_in(kernel, "P")};
  expect_error(
      [&] { autodiff::differentiate(kernel, request); }, ErrorKind::InvalidArgument,
      "P is inside of scan S, so there is no gradient with respect to it; take one of S or "
      "of what it reads");
}

TEST(GradientErrors, StepsThatGather) {
  refused(
      "kernel k(X: float32[m, n], idx: int32[n]) -> (S: float32[m, n]) {\n"
      "  scan t {\n    S[0, i] = X[0, i]\n    S[t, i] = S[t - 1, idx[i]] + X[t, i]\n  }\n}\n",
      ErrorKind::Unsupported,
      "a step of a scan reads S at indices that depend on data; the gradient would be a scatter "
      "inside of a scan, which is not supported");
}

TEST(GradientErrors, ExtentsThatDependOnAxes) {
  refused(
      "kernel k(X: float32[n], idx: int32[n]) -> (Y: float32[n]) {"
      " Y[i] = sum[k < i + 1](X[idx[k]]) }",
      ErrorKind::Unsupported,
      "the gradient of X adds up over axes whose extents depend on i, at indices that depend on "
      "data; give them constant extents and a condition (where=)");
  refused("kernel k(X: float32[n]) -> (Y: float32[n]) { Y[i] = prod[k < i + 1](X[k]) }",
          ErrorKind::Unsupported,
          "Y multiplies over an axis whose extent depends on i, and the gradient of that is not "
          "known; give it a constant extent and a condition (where=)");
  refused(
      "kernel k(X: float32[n]) -> (Y: float32[n]) {"
      " Y[i] = sum[k < i + 1](X[k] * sum[l < n](X[l] * X[k])) }",
      ErrorKind::Unsupported,
      "Y has a reduction inside of a reduction whose extent depends on i; its gradient is not "
      "known, make the inner reduction a tensor of its own");
}

}  // namespace
}  // namespace kiln::testing

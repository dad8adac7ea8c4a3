// How parameters go down their gradients: updates of a program like any others, as those of the
// Python client (optimizers.py).
//
//   minimize(program, connection, loss, Sgd{0.1})  ->  update(w, w - w_grad * 0.1) for each w
#include <kiln/intrinsics.h>
#include <kiln/optimizers.h>

#include "client/cpp/fail.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace {

using Indices = std::vector<Expr>;

void check(bool holds, const char* what, double value, const char* range,
           const SourceLocation& where) {
  if (holds) return;
  detail::fail_at(where, "OPTIMIZER", "{} must be {}, but is {}", what, range, value);
}

void check_fraction(const char* what, double value, const SourceLocation& where) {
  check(value >= 0 && value < 1, what, value, "at least 0 and below 1", where);
}

std::vector<std::int64_t> sizes_of(const Tensor& parameter) {
  std::vector<std::int64_t> sizes;
  for (const Expr& size : parameter.shape())
    sizes.push_back(detail::as_integer(size).value());  // parameters are arrays
  return sizes;
}

/// What is remembered of a parameter: zeros at first.
Tensor kept(ProgramBuilder& program, const Tensor& parameter, const std::string& what,
            const SourceLocation& where) {
  return program.parameter(Array(sizes_of(parameter), parameter.dtype()),
                           parameter.name() + "_" + what, where);
}

template <typename Element>
Tensor of_elements(const Tensor& parameter, const std::string& what, Element element,
                   const SourceLocation& where) {
  return compute(parameter.shape(), element, parameter.name() + "_" + what, where);
}

/// Of the values of all steps so far, as this step leaves it: `beta` of it stays in each.
template <typename Value>
Tensor running_mean(ProgramBuilder& program, const Tensor& parameter, const std::string& what,
                    double beta, Value value, const SourceLocation& where) {
  const Tensor before = kept(program, parameter, what, where);
  const Expr stays = constant(beta, parameter.dtype());
  const Expr comes = constant(1 - beta, parameter.dtype());
  const Tensor now = of_elements(
      parameter, what + "_next",
      [&](const Indices& i) { return before(i) * stays + value(i) * comes; }, where);
  program.update(before, now, where);
  return now;
}

/// The parameters, and the gradient of each.
struct Slopes {
  std::vector<Tensor> parameters;
  std::vector<Tensor> gradients;
};

Slopes slopes_of(const ProgramBuilder& program, const Connection& connection, const Tensor& loss,
                 const std::vector<Tensor>& asked, const SourceLocation& where) {
  Slopes slopes{.parameters = asked, .gradients = {}};
  if (asked.empty()) {
    for (const Tensor& parameter : program.parameters()) {
      if (border::is_float(static_cast<int>(parameter.dtype())))
        slopes.parameters.push_back(parameter);
    }
  }
  if (slopes.parameters.empty()) {
    detail::fail_at(where, "PROGRAM_UPDATE",
                    "{} has no parameter to minimize by; make one by program.parameter",
                    program.name());
  }
  Tensor number = loss;
  for (const Expr& size : loss.shape()) {
    if (detail::as_integer(size) == 1) continue;
    detail::fail_at(where, "PROGRAM_NUMBER",
                    "the loss {0} of {1} must have one element, but has a dimension of {2}; take "
                    "its sum",
                    loss.name(), program.name(), detail::size_text(size));
  }
  if (!loss.shape().empty()) {  // else the gradient had dimensions of 1 in front
    const Indices first(loss.shape().size(), Expr(0));
    number = compute(
        {}, [&](const Indices&) { return loss(first); }, loss.name() + "_0", where);
  }
  slopes.gradients = connection.gradient(number, slopes.parameters, {}, where);
  return slopes;
}

}  // namespace

void minimize(ProgramBuilder& program, const Connection& connection, const Tensor& loss,
              const Sgd& sgd, const std::vector<Tensor>& parameters, SourceLocation where) {
  check(sgd.rate >= 0, "the rate of SGD", sgd.rate, "0 or more", where);
  check_fraction("the momentum of SGD", sgd.momentum, where);
  const Slopes slopes = slopes_of(program, connection, loss, parameters, where);
  for (std::size_t p = 0; p < slopes.parameters.size(); ++p) {
    const Tensor& w = slopes.parameters[p];
    const Tensor& gradient = slopes.gradients[p];
    const auto number = [&](double value) { return constant(value, w.dtype()); };
    const auto slope = [&](const Indices& i) {
      const Expr own = gradient(i);
      return sgd.weight_decay == 0 ? own : own + w(i) * number(sgd.weight_decay);
    };
    const auto next = [&](const auto& by) {
      program.update(
          w,
          of_elements(
              w, "next", [&](const Indices& i) { return w(i) - by(i) * number(sgd.rate); }, where),
          where);
    };
    if (sgd.momentum == 0) {
      next(slope);
      continue;
    }
    const Tensor velocity = kept(program, w, "momentum", where);
    const Tensor now = of_elements(
        w, "velocity",
        [&](const Indices& i) { return velocity(i) * number(sgd.momentum) + slope(i); }, where);
    program.update(velocity, now, where);
    next([&](const Indices& i) {
      return sgd.nesterov ? slope(i) + now(i) * number(sgd.momentum) : now(i);
    });
  }
}

void minimize(ProgramBuilder& program, const Connection& connection, const Tensor& loss,
              const Adam& adam, const std::vector<Tensor>& parameters, SourceLocation where) {
  check(adam.rate >= 0, "the rate of Adam", adam.rate, "0 or more", where);
  check_fraction("beta1 of Adam", adam.beta1, where);
  check_fraction("beta2 of Adam", adam.beta2, where);
  const Slopes slopes = slopes_of(program, connection, loss, parameters, where);
  const std::string first = slopes.parameters[0].name();
  const Tensor before = program.parameter(Array({}, int64), first + "_count", where);
  const Tensor count = compute(
      {}, [&](const Indices&) { return before() + 1; }, first + "_turn", where);
  program.update(before, count, where);
  // One over what the running means lack of the whole, as they began with zeros.
  const auto whole = [&](double beta) {
    return compute(
        {},
        [&](const Indices&) {
          const Expr left = pow(constant(beta, float64), count().astype(float64));
          return constant(1.0, float64) / (constant(1.0, float64) - left);
        },
        first + "_whole", where);
  };
  const Tensor whole_mean = whole(adam.beta1);
  const Tensor whole_square = whole(adam.beta2);
  for (std::size_t p = 0; p < slopes.parameters.size(); ++p) {
    const Tensor& w = slopes.parameters[p];
    const Tensor& gradient = slopes.gradients[p];
    const Tensor mean = running_mean(
        program, w, "mean", adam.beta1, [&](const Indices& i) { return gradient(i); }, where);
    const Tensor square = running_mean(
        program, w, "square", adam.beta2,
        [&](const Indices& i) { return gradient(i) * gradient(i); }, where);
    const auto number = [&](double value) { return constant(value, w.dtype()); };
    const auto element = [&](const Indices& i) {
      const Expr unbiased = mean(i) * whole_mean().astype(w.dtype());
      const Expr spread = square(i) * whole_square().astype(w.dtype());
      Expr step = unbiased / (sqrt(spread) + number(adam.epsilon));
      if (adam.weight_decay != 0) step += w(i) * number(adam.weight_decay);
      return w(i) - step * number(adam.rate);
    };
    program.update(w, of_elements(w, "next", element, where), where);
  }
}

}  // namespace client
}  // namespace kiln

#pragma once

#include <vector>

#include <kiln/connection.h>
#include <kiln/program_builder.h>

namespace kiln {
inline namespace client {

/// Steps of `rate` against the gradient. With `momentum`, against a velocity of which that much is
/// left after each step; `nesterov` looks one step of it ahead. `weight_decay` adds that much of a
/// parameter to its gradient.
struct Sgd {
  double rate = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Steps of `rate` times the running mean of the gradient over the root of that of its square
/// (Kingma and Ba, 2015). `weight_decay` takes that much of a parameter, times the rate, off it in
/// each step (AdamW).
struct Adam {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// Each step takes parameters (all floating ones of the program, where none are given) down the
/// gradient of `loss`, a tensor of one element, which the service writes. What is kept of a
/// parameter `w` is a parameter too: w_momentum, or w_mean and w_square.
void minimize(ProgramBuilder& program, const Connection& connection, const Tensor& loss,
              const Sgd& sgd, const std::vector<Tensor>& parameters = {},
              SourceLocation where = SourceLocation::current());
void minimize(ProgramBuilder& program, const Connection& connection, const Tensor& loss,
              const Adam& adam, const std::vector<Tensor>& parameters = {},
              SourceLocation where = SourceLocation::current());

}  // namespace client
}  // namespace kiln

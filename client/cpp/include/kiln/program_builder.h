#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kiln/kernel.h>
#include <kiln/program.h>
#include <kiln/tensor.h>

namespace kiln {
inline namespace client {

namespace detail {
struct ProgramParts;
}  // namespace detail

/// A program in the making: what a step reads are placeholders of it, everything else is ordinary
/// `compute`, `scan` and definitions that are called on tensors. A handle: copies are one program.
///
///   ProgramBuilder program("regression");
///   Tensor x = program.data({100, 4}, float32, "x"), w = program.parameter(Array({4, 1}), "w");
///   ...
///   program.report("loss", loss);
///   program.update(w, w_next);
///   connection.run(program.build(), {{"x", images}});
class ProgramBuilder {
 public:
  /// `seed` is that of its random numbers.
  explicit ProgramBuilder(std::string name = "program", std::uint64_t seed = 0);
  const std::string& name() const;

  // What a step reads.

  /// The rows of a data set that one step sees: the shape is that of a batch.
  Tensor data(Shape shape, DType type = float32, std::string name = "x",
              SourceLocation where = SourceLocation::current());
  /// A tensor that is given with each run, the same in all of its steps.
  Tensor input(Shape shape, DType type = float32, std::string name = "x",
               SourceLocation where = SourceLocation::current());
  /// An array that steps change: of the service, or of this process, which has the new values
  /// when a run ends. A run that is given another one under this name uses that.
  Tensor parameter(const Argument& values, std::string name = "w",
                   SourceLocation where = SourceLocation::current());
  /// The number of the step, an int64 without dimensions.
  Tensor step(SourceLocation where = SourceLocation::current());
  /// Random float32 numbers from 0 to 1, other ones in each step; the same for the same seed on
  /// every device (Philox4x32-10 by counter), and those of the Python client.
  Tensor uniform(const std::vector<std::int64_t>& shape, std::string name = "uniform",
                 SourceLocation where = SourceLocation::current());
  /// Of a normal distribution of mean 0 and standard deviation 1.
  Tensor normal(const std::vector<std::int64_t>& shape, std::string name = "normal",
                SourceLocation where = SourceLocation::current());

  /// Its parameters, in the order in which they were made.
  std::vector<Tensor> parameters() const;

  // What a step does.

  /// At the end of a step the parameter becomes the value.
  void update(const Tensor& parameter, const Tensor& value,
              SourceLocation where = SourceLocation::current());
  /// A tensor of one element whose value is kept of every step.
  void report(std::string name, const Tensor& number);
  /// A tensor that a run gives back as its last step has it.
  void output(std::string name, const Tensor& tensor);
  /// Steps are taken until the tensor, of one element, is not 0.
  void until(const Tensor& condition);

  /// The program as it is now. Placeholders that were made elsewhere are inputs.
  Program build(SourceLocation where = SourceLocation::current()) const;

 private:
  Tensor random(bool is_normal, const std::vector<std::int64_t>& shape, const std::string& name,
                const SourceLocation& where);

  std::shared_ptr<detail::ProgramParts> parts_;
};

}  // namespace client
}  // namespace kiln

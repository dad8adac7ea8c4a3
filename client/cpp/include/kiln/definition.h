#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/schedule.h>
#include <kiln/tensor.h>
#include <kiln/types.h>

namespace kiln {
inline namespace client {

namespace detail {
struct DefinitionState;
}  // namespace detail

/// One argument of a kernel.
struct Parameter {
  std::string name;
  DType type;
  bool output;
  std::vector<std::string> shape;  // as written: "n", "m + 1", "32"
};

/// What a service compiles: the arguments, all that computes them, and a schedule. Immutable.
class Definition {
 public:
  /// The tensors are the arguments of a call, in order: placeholders are inputs, computed ones
  /// outputs.
  Definition(std::initializer_list<Tensor> arguments);
  Definition(const std::vector<Tensor>& arguments, std::string name = "main");
  Definition(const Schedule& schedule, const std::vector<Tensor>& arguments,
             std::string name = "main");

  const std::string& name() const;
  std::vector<Parameter> parameters() const;
  /// Names of the sizes that are known at the call.
  std::vector<std::string> sizes() const;

  /// Names of the schedule blocks of a kernel file: "cpu", "cuda".
  std::vector<std::string> schedules() const;
  /// The same with the schedule block of that name; without steps when there is no such block.
  Definition with_schedule(std::string_view name) const;
  Definition without_schedule() const;
  /// The same with the blocks of a schedule file (`schedule cpu { ... }`) in the place of its own.
  /// `file_name` is what errors call it.
  Definition with_schedules(std::string_view text, const std::string& file_name) const;
  /// The schedule that is used, as a block of a schedule file: `schedule cpu { ... }`.
  std::string schedule_text(std::string_view target = "cpu") const;
  /// As a kernel file.
  std::string text() const;

  explicit Definition(std::shared_ptr<const detail::DefinitionState> state)
      : state_(std::move(state)) {}
  const std::shared_ptr<const detail::DefinitionState>& state() const { return state_; }

 private:
  std::shared_ptr<const detail::DefinitionState> state_;
};

/// The kernels of a kernel file's text. `file_name` is what errors call it.
std::vector<Definition> parse(std::string_view text, const std::string& file_name);
/// The kernels of a .kiln file.
std::vector<Definition> load_file(const std::string& path);

/// The text of a kernel file or a schedule file, laid out anew: a statement a line, comments at
/// their places. Only syntax is checked.
std::string format_text(std::string_view text, const std::string& file_name);
/// The text of a kernel file in which `kernel` has the blocks of a schedule file, in the place of
/// its own for the same targets. Comments stay.
std::string apply_schedules(std::string_view text, const std::string& file_name,
                            std::string_view kernel, std::string_view schedules,
                            const std::string& schedule_file);

}  // namespace client
}  // namespace kiln

#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
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

/// What a definition makes, in the order of its outputs.
class Tensors : public std::vector<Tensor> {
 public:
  using std::vector<Tensor>::vector;
  /// The only one. Throws InvalidArgument when there are others.
  operator Tensor() const;
};

/// What a definition is called on: a tensor, or a number in place of one without dimensions.
class Given {
 public:
  Given(Tensor tensor);
  Given(const Tensors& only);
  Given(Expr number);
  template <typename Number>
  requires(std::is_arithmetic_v<Number>) Given(Number number) : Given(Expr(number)) {}

  bool is_number() const;
  DType dtype() const;
  Shape shape() const;
  Expr at(const std::vector<Expr>& indices) const;
  const Tensor& tensor() const { return std::get<Tensor>(value_); }

 private:
  std::variant<Tensor, Expr> value_;
};

/// Along which dimension of its arguments a definition over one dimension is called, as numpy's
/// `axis`; negative ones count from the end. The other dimensions are mapped over.
struct Along {
  int axis;
};

/// What a service compiles: the arguments, all that computes them, and a schedule. Immutable.
class Definition {
 public:
  /// The tensors are the arguments of a call, in order: placeholders are inputs, computed ones
  /// outputs.
  Definition(std::initializer_list<Tensor> arguments,
             SourceLocation where = SourceLocation::current());
  Definition(const std::vector<Tensor>& arguments, const std::string& name = "main",
             SourceLocation where = SourceLocation::current());
  Definition(const Schedule& schedule, const std::vector<Tensor>& arguments,
             const std::string& name = "main", SourceLocation where = SourceLocation::current());

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

  /// The definition on tensors of the caller's: its stages join their graph, with sizes and types
  /// bound to theirs. Dimensions in front of those it has are mapped over, and stretch as numpy's.
  /// `sizes` are those that no shape gives: {{"stride", 2}}.
  Tensors apply(const std::vector<Given>& arguments, const std::map<std::string, Expr>& sizes = {},
                std::optional<Along> along = {},
                SourceLocation where = SourceLocation::current()) const;

  /// Its arguments as tensors of their own, in order: for a schedule, or to build with others.
  std::vector<Tensor> tensors(SourceLocation where = SourceLocation::current()) const;

  // C = matmul(A, B)
  Tensors operator()(Given a, SourceLocation where = SourceLocation::current()) const {
    return apply({a}, {}, {}, where);
  }
  Tensors operator()(Given a, Given b, SourceLocation where = SourceLocation::current()) const {
    return apply({a, b}, {}, {}, where);
  }
  Tensors operator()(Given a, Given b, Given c,
                     SourceLocation where = SourceLocation::current()) const {
    return apply({a, b, c}, {}, {}, where);
  }
  Tensors operator()(Given a, Given b, Given c, Given d,
                     SourceLocation where = SourceLocation::current()) const {
    return apply({a, b, c, d}, {}, {}, where);
  }
  // Y = softmax(X, Along{1})
  Tensors operator()(Given a, Along along, SourceLocation where = SourceLocation::current()) const {
    return apply({a}, {}, along, where);
  }
  Tensors operator()(Given a, Given b, Along along,
                     SourceLocation where = SourceLocation::current()) const {
    return apply({a, b}, {}, along, where);
  }

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
/// An operator that Kiln comes with (docs/operators.md): "matmul", "conv2d", "softmax", ...
Definition load_operator(std::string_view name);

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

// Finds what sizes, types and leading dimensions of a definition stand for in one call, from the
// arguments in their order, and says which argument each came from when another disagrees.
//
//   softmax(X: float32[n]) on float64 (batch, 10)  ->  n = 10, float32 = float64, (batch,) in front
//
// Leading dimensions stretch to one shape as numpy's broadcast.
#include "client/cpp/binding.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/ranges.h>

#include "client/cpp/fail.h"
#include "client/cpp/instance.h"
#include "client/cpp/nodes.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

const v1::Placeholder& placeholder_of(const v1::Definition& definition, std::uint32_t stage) {
  return definition.stages(static_cast<int>(stage)).placeholder();
}

class Binder {
 public:
  Binder(const border::WireKernel& kernel, const SourceLocation& where)
      : kernel_(kernel),
        definition_(kernel.definition),
        inputs_(parameters_of(kernel.definition, true)),
        binding_{.kernel = kernel, .where = where} {}

  Binding run(const std::vector<Given>& arguments, const std::map<std::string, Expr>& sizes,
              std::optional<Along> along) {
    check_count(arguments.size());
    bind_given(sizes);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      bind_type(inputs_[i], arguments[i]);
    if (along) place_axis(along->axis, arguments);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      binding_.arguments.emplace(inputs_[i].stage(), arguments[i]);
      bind_sizes(inputs_[i], arguments[i]);
    }
    check_all_sizes();
    for (const v1::TensorId& input : inputs_)
      check_shape(input);
    check_batches();
    return std::move(binding_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(std::string_view reason, fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail_at(binding_.where, reason, format, std::forward<Args>(args)...);
  }

  std::string kernel_name() const { return called(kernel_.names.kernel()); }
  std::string name(const v1::TensorId& tensor) const { return name_of(kernel_, tensor); }
  std::string what(const v1::TensorId& tensor) const {
    return fmt::format("argument {} of {}", name(tensor), kernel_name());
  }
  std::vector<std::string> sizes() const {
    return {kernel_.names.variables().begin(), kernel_.names.variables().end()};
  }

  /// By position, so a wrong number is told before anything of any argument.
  void check_count(std::size_t given) const {
    if (given == inputs_.size()) return;
    std::vector<std::string> names;
    for (const v1::TensorId& input : inputs_)
      names.push_back(name(input));
    refuse("ARGUMENT_COUNT", "{} takes {} tensor{} ({}), but got {}", kernel_name(), inputs_.size(),
           inputs_.size() == 1 ? "" : "s", fmt::join(names, ", "), given);
  }

  /// Sizes that the caller names win over those of shapes, which must agree with them.
  void bind_given(const std::map<std::string, Expr>& given) {
    const std::vector<std::string> known = sizes();
    for (const auto& [name, value] : given) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        refuse("UNKNOWN_SIZE", "{} has no size {}; {}", kernel_name(), name,
               known.empty() ? "it has none"
                             : fmt::format("its sizes are {}", fmt::join(known, ", ")));
      }
      const auto variable = static_cast<std::uint32_t>(found - known.begin());
      binding_.sizes.emplace(variable, to_index(value, "size " + name));
      sources_[variable] = "as given";
    }
  }

  /// A type that inputs have stands for the type of the tensors given.
  void bind_type(const v1::TensorId& input, const Given& argument) {
    if (argument.is_number()) return;
    const int declared = placeholder_of(definition_, input.stage()).type();
    const DType type = argument.dtype();
    const auto [bound, added] = binding_.types.emplace(declared, type);
    if (added) {
      first_of_type_[declared] = name(input);
    } else if (bound->second != type) {
      refuse("ARGUMENT_TYPE", "{} is {}, but {} is {}; cast one of them", what(input),
             kiln::name_of(type), first_of_type_[declared], kiln::name_of(bound->second));
    }
    if (declared == static_cast<int>(int64) && type != int64) {
      refuse("ARGUMENT_TYPE", "{} is {}, but must be int64", what(input), kiln::name_of(type));
    }
  }

  void place_axis(int axis, const std::vector<Given>& arguments) {
    int widest = 0;
    bool fits = !inputs_.empty();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      fits = fits && placeholder_of(definition_, inputs_[i].stage()).shape_size() <= 1;
      widest = std::max(widest, static_cast<int>(arguments[i].shape().size()));
    }
    const bool has_one =
        std::any_of(inputs_.begin(), inputs_.end(), [&](const v1::TensorId& input) {
          return placeholder_of(definition_, input.stage()).shape_size() == 1;
        });
    if (!fits || !has_one) {
      refuse("AXIS", "{} takes no Along, since it is not over one dimension", kernel_name());
    }
    if (axis < -widest || axis >= widest) {
      refuse("AXIS_RANGE", "{}: axis {} is out of range; the tensors have {} dimensions",
             kernel_name(), axis, widest);
    }
    binding_.axis = static_cast<std::size_t>(axis < 0 ? -axis : widest - axis);
  }

  /// The dimensions in front, then the argument's own.
  Shape placed_shape(const v1::TensorId& input, const Given& argument) const {
    const Shape shape = argument.shape();
    const int rank = placeholder_of(definition_, input.stage()).shape_size();
    Shape placed = shape;
    const std::vector<std::size_t> order =
        order_of_argument(shape.size(), static_cast<std::size_t>(rank), binding_.axis);
    for (std::size_t d = 0; d < shape.size(); ++d)
      placed[order[d]] = shape[d];
    return placed;
  }

  /// The variable that an extent is, if it is no more than that.
  std::optional<std::uint32_t> variable(std::uint32_t extent) const {
    const v1::Expression& row = definition_.expressions(static_cast<int>(extent));
    if (row.kind_case() != v1::Expression::kVariable) return std::nullopt;
    return row.variable();
  }

  /// The first argument that has a size gives it; leading dimensions are what the input has in
  /// front.
  void bind_sizes(const v1::TensorId& input, const Given& argument) {
    const v1::Placeholder& declared = placeholder_of(definition_, input.stage());
    const Shape shape = placed_shape(input, argument);
    const auto rank = static_cast<std::size_t>(declared.shape_size());
    if (shape.size() < rank) {
      refuse("ARGUMENT_RANK", "{} has {} dimension{}, but must have {} or more", what(input),
             shape.size(), shape.size() == 1 ? "" : "s", rank);
    }
    const std::size_t first = shape.size() - rank;
    binding_.batches[input.stage()] =
        Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t d = 0; d < rank; ++d) {
      const auto size = variable(declared.shape(static_cast<int>(d)));
      if (!size || binding_.sizes.contains(*size)) continue;
      binding_.sizes.emplace(*size, shape[first + d]);
      sources_[*size] = fmt::format("from dimension {} of {}", d, name(input));
    }
  }

  void check_all_sizes() const {
    const std::vector<std::string> known = sizes();
    for (std::uint32_t size = 0; size < known.size(); ++size) {
      if (binding_.sizes.contains(size)) continue;
      refuse("MISSING_SIZE", "{} needs the size {}, which no shape gives: call it with {}=...",
             kernel_name(), known[size], known[size]);
    }
  }

  /// Every dimension against what the sizes make of it, also those that are computed from several.
  void check_shape(const v1::TensorId& input) const {
    const v1::Placeholder& declared = placeholder_of(definition_, input.stage());
    const Shape shape = placed_shape(input, binding_.arguments.at(input.stage()));
    const std::size_t first = shape.size() - static_cast<std::size_t>(declared.shape_size());
    Instance sizes_only(binding_);
    for (int d = 0; d < declared.shape_size(); ++d) {
      const Expr& actual = shape[first + static_cast<std::size_t>(d)];
      const Expr expected = sizes_only.size(declared.shape(d));
      const auto apart = difference(actual, expected);
      if (apart == 0) continue;
      const auto size = variable(declared.shape(d));
      const std::string reason =
          size ? fmt::format(" ({}, {})", sizes()[*size], sources_.at(*size)) : "";
      refuse("ARGUMENT_SHAPE", "{}: dimension {} is {}, {} {}{}", what(input), d, written(actual),
             apart ? "but must be" : "which is not known to be", written(expected), reason);
    }
  }

  void check_batches() const {
    for (std::size_t a = 0; a < inputs_.size(); ++a) {
      for (std::size_t b = a + 1; b < inputs_.size(); ++b) {
        const Shape pair[] = {binding_.batches.at(inputs_[a].stage()),
                              binding_.batches.at(inputs_[b].stage())};
        if (stretched(pair)) continue;
        refuse("BATCH",
               "{}: the leading dimensions of {} are {} and those of {} {}, which do not stretch "
               "to one shape",
               kernel_name(), name(inputs_[a]), written(pair[0]), name(inputs_[b]),
               written(pair[1]));
      }
    }
  }

  const border::WireKernel& kernel_;
  const v1::Definition& definition_;
  std::vector<v1::TensorId> inputs_;
  Binding binding_;
  std::map<std::uint32_t, std::string> sources_;  // by variable: where its value comes from
  std::map<int, std::string> first_of_type_;
};

}  // namespace

Binding bind(const border::WireKernel& kernel, const std::vector<Given>& arguments,
             const std::map<std::string, Expr>& sizes, std::optional<Along> along,
             const SourceLocation& where) {
  return Binder(kernel, where).run(arguments, sizes, along);
}

std::vector<std::size_t> order_of(std::size_t dimensions, std::size_t rank,
                                  std::optional<std::size_t> axis) {
  std::vector<std::size_t> order(dimensions);
  std::iota(order.begin(), order.end(), 0);
  if (!axis || rank != 1) return order;
  const std::size_t place = dimensions - std::min(*axis, dimensions);
  order.pop_back();
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), dimensions - 1);
  return order;
}

std::vector<std::size_t> order_of_argument(std::size_t dimensions, std::size_t rank,
                                           std::optional<std::size_t> axis) {
  return order_of(dimensions, rank, axis && dimensions < *axis ? std::nullopt : axis);
}

std::vector<v1::TensorId> parameters_of(const v1::Definition& definition, bool inputs) {
  std::vector<v1::TensorId> found;
  for (const v1::TensorId& tensor : definition.parameters()) {
    const bool is_input = definition.stages(static_cast<int>(tensor.stage())).has_placeholder();
    if (is_input == inputs) found.push_back(tensor);
  }
  return found;
}

std::string name_of(const border::WireKernel& kernel, const v1::TensorId& tensor) {
  for (const v1::TensorName& named : kernel.names.tensors()) {
    const bool is_it =
        named.tensor().stage() == tensor.stage() && named.tensor().output() == tensor.output();
    if (is_it) return named.name();
  }
  return kernel.names.stages(static_cast<int>(tensor.stage()));
}

}  // namespace detail

Given::Given(Tensor tensor) : value_(std::move(tensor)) {}
Given::Given(const Tensors& only) : value_(static_cast<Tensor>(only)) {}
Given::Given(Expr number) : value_(std::move(number)) {}

bool Given::is_number() const { return std::holds_alternative<Expr>(value_); }

DType Given::dtype() const {
  return is_number() ? std::get<Expr>(value_).dtype() : std::get<Tensor>(value_).dtype();
}

Shape Given::shape() const { return is_number() ? Shape() : std::get<Tensor>(value_).shape(); }

Expr Given::at(const std::vector<Expr>& indices) const {
  return is_number() ? std::get<Expr>(value_) : std::get<Tensor>(value_)(indices);
}

Tensors::operator Tensor() const {
  if (size() != 1) {
    detail::fail(ErrorKind::InvalidArgument, "OUTPUT_COUNT",
                 "the definition makes {} tensors: take them by their positions", size());
  }
  return front();
}

}  // namespace client
}  // namespace kiln

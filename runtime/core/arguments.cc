// Matches the arguments of a call with a kernel's parameters: sizes from dimensions that are one
// alone (n), then from those that are one and a constant (n + 1), then every shape is computed from
// the sizes and compared. Inputs go before outputs, so that where two disagree the sentence blames
// the output.
#include "runtime/core/arguments.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

/// Bytes of one tensor, and the largest size: what fits an address space. Products of a few of them
/// in index arithmetic stay within int64.
constexpr int64_t kMaxBytes = int64_t{1} << 47;

bool is_scalar(const SizeExpr& expr) {
  return expr.nodes.size() == 1 && expr.nodes[0].op == SizeExpr::Op::Scalar;
}

/// A size plus a constant: m + 1, from which m follows.
struct Shifted {
  size_t size;
  int64_t by;
};

std::optional<Shifted> as_shifted(const SizeExpr& expr) {
  using Op = SizeExpr::Op;
  if (expr.nodes.size() != 3) return std::nullopt;
  const auto& [a, b, op] = std::tie(expr.nodes[0], expr.nodes[1], expr.nodes[2]);
  if (op.op != Op::Add && op.op != Op::Sub) return std::nullopt;
  if (a.op == Op::Scalar && b.op == Op::Constant && b.operand > -kMaxBytes) {
    return Shifted{static_cast<size_t>(a.operand), op.op == Op::Add ? b.operand : -b.operand};
  }
  if (a.op == Op::Constant && b.op == Op::Scalar && op.op == Op::Add) {
    return Shifted{static_cast<size_t>(b.operand), a.operand};
  }
  return std::nullopt;
}
bool is_constant(const SizeExpr& expr) {
  return expr.nodes.size() == 1 && expr.nodes[0].op == SizeExpr::Op::Constant;
}

std::string joined(std::span<const std::string> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Solves the sizes from the arguments of one call and checks the rest against them.
class Binder {
 public:
  Binder(const Artifact& artifact, const KernelNames& names,
         std::span<const ArgumentSlot> arguments)
      : artifact_(artifact),
        names_(names),
        arguments_(arguments),
        sizes_(static_cast<size_t>(artifact.size_count)) {
    KILN_CHECK(names.parameters.size() == artifact.parameters.size());
    KILN_CHECK(names.sizes.size() == sizes_.size());
  }

  BoundCall bind(const std::map<std::string, int64_t>& given_sizes) {
    check_count();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      check_argument(i);
    }
    for (const auto& [name, value] : given_sizes) {
      take_given(name, value);
    }
    // Inputs first: when an input and an output disagree, it is the output that is wrong.
    for (const bool outputs : {false, true}) {
      for (size_t i = 0; i < arguments_.size(); ++i) {
        if (artifact_.parameters[i].is_output == outputs) solve_from(i);
      }
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      solve_shifted_from(i);
    }
    BoundCall call;
    call.scalars = known_sizes();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      call.shapes.push_back(checked_shape(i, call.scalars));
    }
    check_requirements(call);
    append_strides(call);
    call.variant = chosen_variant(call.scalars);
    return call;
  }

 private:
  struct KnownSize {
    int64_t value;
    std::optional<std::pair<size_t, size_t>> origin;  // dimension and argument; none: it was given
  };

  /// "from dimension 1 of A". Said in errors alone, so made there: texts cost more than all else.
  std::string origin_of(const KnownSize& size) const {
    if (!size.origin) return "given as a size";
    const auto& [dimension, argument] = *size.origin;
    return fmt::format("from dimension {} of {}", dimension, names_.parameters[argument]);
  }

  std::string argument_name(size_t i) const {
    return fmt::format("argument {} of {}", names_.parameters[i], called(names_.kernel));
  }

  void check_count() const {
    const size_t wanted = artifact_.parameters.size();
    if (arguments_.size() == wanted) return;
    fail(ErrorKind::InvalidArgument, "ARGUMENT_COUNT", "{} takes {} ({}), but got {}",
         called(names_.kernel), counted(wanted, "argument"), joined(names_.parameters),
         arguments_.size());
  }

  void check_argument(size_t i) const {
    const Parameter& parameter = artifact_.parameters[i];
    if (!arguments_[i].given) {
      if (parameter.is_output) return;
      fail(ErrorKind::InvalidArgument, "ARGUMENT_MISSING",
           "{} is an input, but nothing is given for it", argument_name(i));
    }
    const ArgumentShape& layout = arguments_[i].layout;
    if (layout.type != parameter.type) {
      fail(ErrorKind::InvalidArgument, "ARGUMENT_TYPE", "{} is {}, but must be {}",
           argument_name(i), layout.type, parameter.type);
    }
    if (layout.shape.size() != parameter.shape.size()) {
      fail(ErrorKind::InvalidArgument, "ARGUMENT_RANK", "{} has {}, but must have {}",
           argument_name(i), counted(layout.shape.size(), "dimension"), parameter.shape.size());
    }
    for (size_t d = 0; d < layout.shape.size(); ++d) {
      if (layout.shape[d] < 0) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
             "{}: dimension {} is {}, but must not be negative", argument_name(i), d,
             layout.shape[d]);
      }
    }
    if (!layout.strides.empty() && layout.strides.size() != layout.shape.size()) {
      fail(ErrorKind::InvalidArgument, "ARGUMENT_STRIDES", "{} has {}, but must have {}",
           argument_name(i), counted(layout.strides.size(), "stride"), layout.shape.size());
    }
  }

  void take_given(const std::string& name, int64_t value) {
    const auto found = std::find(names_.sizes.begin(), names_.sizes.end(), name);
    if (found == names_.sizes.end()) {
      if (names_.sizes.empty()) {
        fail(ErrorKind::InvalidArgument, "SIZE_UNKNOWN", "{} has no size {}; it has no sizes",
             called(names_.kernel), name);
      }
      fail(ErrorKind::InvalidArgument, "SIZE_UNKNOWN", "{} has no size {}; its sizes are {}",
           called(names_.kernel), name, joined(names_.sizes));
    }
    if (value < -kLargestSize || value > kLargestSize) {
      fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW", "size {} of {} is {}; the limit is {}",
           name, called(names_.kernel), value, kLargestSize);
    }
    sizes_[static_cast<size_t>(found - names_.sizes.begin())] = {value, std::nullopt};
  }

  /// Takes the sizes that are dimensions of this argument; one that is known already must agree.
  void solve_from(size_t i) {
    if (!arguments_[i].given) return;
    const std::vector<SizeExpr>& shape = artifact_.parameters[i].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!is_scalar(shape[d])) continue;
      const auto size = static_cast<size_t>(shape[d].nodes[0].operand);
      const int64_t actual = arguments_[i].layout.shape[d];
      if (!sizes_[size]) {
        sizes_[size] = {actual, std::pair(d, i)};
      } else if (sizes_[size]->value != actual) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
             "{}: dimension {} is {}, but must be {} ({}, {})", argument_name(i), d, actual,
             sizes_[size]->value, names_.sizes[size], origin_of(*sizes_[size]));
      }
    }
  }

  /// Sizes that are no dimension, but one up to a constant: m from a tensor of m + 1 elements. That
  /// all dimensions agree is seen when the shapes are checked.
  void solve_shifted_from(size_t i) {
    if (!arguments_[i].given) return;
    const std::vector<SizeExpr>& shape = artifact_.parameters[i].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<Shifted> shifted = as_shifted(shape[d]);
      if (!shifted || sizes_[shifted->size]) continue;
      int64_t value = 0;
      if (__builtin_sub_overflow(arguments_[i].layout.shape[d], shifted->by, &value)) continue;
      sizes_[shifted->size] = {value, std::pair(d, i)};
    }
  }

  std::vector<int64_t> known_sizes() const {
    std::vector<int64_t> values;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!sizes_[i]) {
        fail(ErrorKind::InvalidArgument, "SIZE_MISSING",
             "size {} of {} is not given by any argument; pass it as a size", names_.sizes[i],
             called(names_.kernel));
      }
      values.push_back(sizes_[i]->value);
    }
    return values;
  }

  /// What the extent of a dimension is computed from, in parentheses.
  std::string why(const SizeExpr& extent) const {
    return is_constant(extent) ? "" : fmt::format(" ({})", extent.describe(names_.sizes));
  }

  int64_t evaluated(const SizeExpr& extent, std::span<const int64_t> sizes, size_t dimension,
                    size_t argument) const {
    try {
      return extent.evaluate(sizes);
    } catch (Error& error) {
      error.add_note(
          fmt::format("in dimension {} of {}{}", dimension, argument_name(argument), why(extent)));
      throw;
    }
  }

  /// The shape the sizes say, which a given argument must have.
  std::vector<int64_t> checked_shape(size_t i, std::span<const int64_t> sizes) const {
    std::vector<int64_t> shape;
    for (const SizeExpr& extent : artifact_.parameters[i].shape) {
      const size_t d = shape.size();
      const int64_t wanted = evaluated(extent, sizes, d, i);
      if (arguments_[i].given && arguments_[i].layout.shape[d] != wanted) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
             "{}: dimension {} is {}, but must be {}{}", argument_name(i), d,
             arguments_[i].layout.shape[d], wanted, why(extent));
      }
      if (wanted < 0) {
        fail(ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
             "{}: dimension {} would be {}{}, but must not be negative", argument_name(i), d,
             wanted, why(extent));
      }
      shape.push_back(wanted);
    }
    check_extent(i, shape);
    return shape;
  }

  /// Every index into the tensor, and every product of its extents, fits int64 with room to spare.
  void check_extent(size_t i, std::span<const int64_t> shape) const {
    __int128 bytes = size_of(artifact_.parameters[i].type);
    for (const int64_t extent : shape) {
      bytes *= std::max<int64_t>(extent, 1);
      if (bytes > kMaxBytes) {
        fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
             "{} has shape ({}), which is past the limit of {} bytes", argument_name(i),
             fmt::join(shape, ", "), kMaxBytes);
      }
    }
  }

  void check_requirements(const BoundCall& call) const {
    for (const SizeRequirement& requirement : artifact_.requirements) {
      const std::span sizes(call.scalars);
      const int64_t actual = requirement.value.evaluate(sizes);
      const int64_t minimum = requirement.minimum.evaluate(sizes);
      if (actual >= minimum) continue;
      const auto stage = static_cast<size_t>(requirement.stage);
      const std::string what =
          requirement.parameter >= 0
              ? fmt::format("{}: dimension {}",
                            argument_name(static_cast<size_t>(requirement.parameter)),
                            requirement.dimension)
              : fmt::format("size {} of {}", requirement.value.describe(names_.sizes),
                            called(names_.kernel));
      fail(ErrorKind::InvalidArgument, "SCAN_EXTENT",
           "{} is {}, but must be at least {} (initial steps of {})", what, actual, minimum,
           stage < names_.stages.size() ? names_.stages[stage] : "the scan");
    }
  }

  /// After the sizes come the strides of all parameters, those of missing outputs compact.
  void append_strides(BoundCall& call) const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      std::vector<int64_t> strides = compact_strides(call.shapes[i]);
      const ArgumentShape& layout = arguments_[i].layout;
      if (arguments_[i].given && !layout.strides.empty()) {
        check_strides(i, call.shapes[i]);
        const bool empty = std::count(call.shapes[i].begin(), call.shapes[i].end(), 0) > 0;
        for (size_t d = 0; d < strides.size(); ++d) {
          // The stride of a dimension never stepped along is whatever the caller's library left.
          if (!empty && call.shapes[i][d] > 1) strides[d] = layout.strides[d];
        }
      }
      call.scalars.insert(call.scalars.end(), strides.begin(), strides.end());
    }
  }

  /// A call may step backwards and far, but within an address space, and an output needs a place of
  /// its own for each element.
  void check_strides(size_t i, std::span<const int64_t> shape) const {
    const std::vector<int64_t>& strides = arguments_[i].layout.strides;
    __int128 reach = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const __int128 step = strides[d] < 0 ? -static_cast<__int128>(strides[d]) : strides[d];
      if (shape[d] > 1) reach += (shape[d] - 1) * step;
    }
    if (reach * size_of(artifact_.parameters[i].type) > kMaxBytes) {
      fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
           "{} has strides ({}), which reach past the limit of {} bytes", argument_name(i),
           fmt::join(strides, ", "), kMaxBytes);
    }
    if (artifact_.parameters[i].is_output && overlaps_itself(shape, strides)) {
      fail(
          ErrorKind::InvalidArgument, "ARGUMENT_STRIDES",
          "{} is written, but with strides ({}) its elements overlap; pass memory with a place for "
          "each element",
          argument_name(i), fmt::join(strides, ", "));
    }
  }

  /// Whether two elements may share a place: unless each stride steps past all that lies inside.
  static bool overlaps_itself(std::span<const int64_t> shape, std::span<const int64_t> strides) {
    if (std::count(shape.begin(), shape.end(), 0) > 0) return false;
    std::vector<size_t> order;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > 1) order.push_back(d);
    }
    const auto step = [&](size_t d) { return strides[d] < 0 ? -strides[d] : strides[d]; };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return step(a) < step(b); });
    int64_t reach = 0;
    for (const size_t d : order) {
      if (step(d) <= reach) return true;
      reach += (shape[d] - 1) * step(d);
    }
    return false;
  }

  /// The first whose condition holds: compact ones come first.
  int chosen_variant(std::span<const int64_t> scalars) const {
    for (size_t v = 0; v < artifact_.variants.size(); ++v) {
      if (artifact_.variants[v].condition.evaluate(scalars) != 0) return static_cast<int>(v);
    }
    fail(ErrorKind::Unsupported, "NO_VARIANT",
         "{} was built for arguments without strides; copy them, or build it for strides",
         called(names_.kernel));
  }

  const Artifact& artifact_;
  const KernelNames& names_;
  std::span<const ArgumentSlot> arguments_;
  std::vector<std::optional<KnownSize>> sizes_;
};

}  // namespace

BoundCall bind_arguments(const Artifact& artifact, const KernelNames& names,
                         std::span<const ArgumentSlot> arguments,
                         const std::map<std::string, int64_t>& given_sizes) {
  return Binder(artifact, names, arguments).bind(given_sizes);
}

std::vector<int64_t> compact_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

int64_t byte_size(DType type, std::span<const int64_t> shape) {
  if (std::count(shape.begin(), shape.end(), 0) > 0) return 0;
  __int128 bytes = size_of(type);
  for (const int64_t extent : shape) {
    KILN_CHECK(extent >= 0);
    bytes *= extent;
    if (bytes > kMaxBytes) {
      fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
           "a {} tensor of shape ({}) is past the limit of {} bytes", type, fmt::join(shape, ", "),
           kMaxBytes);
    }
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace kiln

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <kiln/expr.h>
#include <kiln/source_location.h>

namespace kiln {
inline namespace client {

using Shape = std::vector<Expr>;

/// What a tensor is called, and its axes: `"B"`, or `{"B", {"i", "j"}}`.
struct Names {
  Names(const char* tensor) : tensor(tensor) {}
  Names(std::string tensor) : tensor(std::move(tensor)) {}
  Names(std::string tensor, std::vector<std::string> axes)
      : tensor(std::move(tensor)), axes(std::move(axes)) {}

  std::string tensor;
  std::vector<std::string> axes;
};

class Indexed;

/// A tensor of a definition: a placeholder, or what compute and scan make. It holds no numbers;
/// those are an Array or a RemoteArray.
class Tensor {
 public:
  Shape shape() const;
  DType dtype() const;
  std::string name() const;

  /// The element at these indices, one a dimension.
  template <typename... Index>
  requires(std::convertible_to<const Index&, Expr>&&...) Expr operator()(
      const Index&... indices) const {
    return read({Expr(indices)...});
  }
  Expr operator()(const std::vector<Expr>& indices) const { return read(indices); }
  /// The same, an index at a time: A[i][j].
  Indexed operator[](const Expr& index) const;

  /// The axes of the compute that makes this tensor, for its schedule.
  std::vector<Axis> axes(SourceLocation where = SourceLocation::current()) const;
  Axis axis(std::size_t dimension, SourceLocation where = SourceLocation::current()) const;
  /// The axes that the compute's reductions run over, outermost first.
  std::vector<Axis> reduce_axes(SourceLocation where = SourceLocation::current()) const;
  /// The time axis of a scan.
  Axis scan_axis(SourceLocation where = SourceLocation::current()) const;

  Tensor(std::shared_ptr<const detail::StageNode> stage, unsigned output)
      : stage_(std::move(stage)), output_(output) {}
  const std::shared_ptr<const detail::StageNode>& stage() const { return stage_; }
  unsigned output() const { return output_; }

 private:
  Expr read(std::vector<Expr> indices) const;

  std::shared_ptr<const detail::StageNode> stage_;
  unsigned output_;
};

/// A tensor with its first indices; with all of them, an element.
class Indexed {
 public:
  Indexed operator[](const Expr& index) const {
    std::vector<Expr> indices = indices_;
    indices.push_back(index);
    return Indexed(tensor_, std::move(indices));
  }
  operator Expr() const { return tensor_(indices_); }
  Expr astype(DType type) const { return tensor_(indices_).astype(type); }

  Indexed(Tensor tensor, std::vector<Expr> indices)
      : tensor_(std::move(tensor)), indices_(std::move(indices)) {}

 private:
  Tensor tensor_;
  std::vector<Expr> indices_;
};

inline Indexed Tensor::operator[](const Expr& index) const { return Indexed(*this, {index}); }

/// An argument of the kernel. `where` is the line that errors name.
Tensor placeholder(Shape shape, DType type = float32, Names names = "placeholder",
                   SourceLocation where = SourceLocation::current());

/// Where a scatter updates its base, one index a dimension, and with what.
struct Update {
  std::vector<Expr> indices;
  Expr value;
};

namespace detail {

using Bodies = std::function<std::vector<Expr>(const std::vector<Expr>&)>;

std::vector<Tensor> compute(Shape shape, const Bodies& bodies, int takes, Names names,
                            SourceLocation where);

template <typename Body, std::size_t... I>
constexpr bool takes_indices(std::index_sequence<I...>) {
  return std::is_invocable_v<Body&, decltype(static_cast<void>(I), std::declval<const Expr&>())...>;
}

/// Whether the body can be called with N indices.
template <typename Body, std::size_t N>
constexpr bool takes = takes_indices<Body>(std::make_index_sequence<N>{});

/// Whether the body wants all indices as one vector. A body that takes one index is not asked,
/// since asking would instantiate it.
template <typename Body>
constexpr bool takes_vector =
    std::conjunction_v<std::bool_constant<!takes<Body, 1>>,
                       std::is_invocable<Body&, const std::vector<Expr>&>>;

template <typename Body, std::size_t... I>
decltype(auto) call_with(Body& body, const std::vector<Expr>& axes, std::index_sequence<I...>) {
  return body(axes[I]...);
}

/// How many indices the body takes, when that is one number; -1: any.
template <typename Body>
constexpr int arity() {
  constexpr std::array<bool, 7> fits{takes<Body, 0>, takes<Body, 1>, takes<Body, 2>, takes<Body, 3>,
                                     takes<Body, 4>, takes<Body, 5>, takes<Body, 6>};
  int found = -2;
  for (int n = 0; n < 7; ++n) {
    if (fits[static_cast<std::size_t>(n)]) found = found == -2 ? n : -1;
  }
  return found;
}

std::vector<Expr> to_bodies(Update update);
inline std::vector<Expr> to_bodies(Expr body) { return {std::move(body)}; }
inline std::vector<Expr> to_bodies(std::vector<Expr> bodies) { return bodies; }

/// The call of `body` with N axes, for the N that it takes.
template <std::size_t N, typename Body>
std::vector<Expr> call_body(Body& body, const std::vector<Expr>& axes) {
  if constexpr (N > 6) {
    return {};
  } else {
    if constexpr (takes<Body, N>) {
      if (axes.size() == N) {
        return to_bodies(call_with(body, axes, std::make_index_sequence<N>{}));
      }
    }
    return call_body<N + 1>(body, axes);
  }
}

/// What the body gives for the first number of indices that it takes.
template <typename Body, std::size_t N = 0>
constexpr auto result_of() {
  if constexpr (takes<Body, N>) {
    return std::type_identity<decltype(call_with(std::declval<Body&>(),
                                                 std::declval<const std::vector<Expr>&>(),
                                                 std::make_index_sequence<N>{}))>{};
  } else if constexpr (N < 6) {
    return result_of<Body, N + 1>();
  } else {
    static_assert(takes<Body, N>,
                  "the body of compute takes 0 to 6 indices (kiln::Expr), or a vector of them");
    return std::type_identity<std::vector<Expr>>{};
  }
}

}  // namespace detail

/// tensor[axes] = body(axes), for every index of the shape.
///
/// The body takes an Expr a dimension (up to 6), or `const std::vector<Expr>&`. One that returns
/// std::vector<Expr> makes several tensors.
template <typename Body>
auto compute(Shape shape, Body body, Names names = "compute",
             SourceLocation where = SourceLocation::current()) {
  if constexpr (detail::takes_vector<Body>) {
    using Result = std::invoke_result_t<Body&, const std::vector<Expr>&>;
    auto tensors = detail::compute(
        std::move(shape),
        [&](const std::vector<Expr>& axes) { return detail::to_bodies(body(axes)); }, -1,
        std::move(names), where);
    if constexpr (std::is_convertible_v<Result, Expr>) {
      return tensors.front();
    } else {
      return tensors;
    }
  } else {
    using Result = typename decltype(detail::result_of<Body>())::type;
    auto tensors = detail::compute(
        std::move(shape),
        [&](const std::vector<Expr>& axes) { return detail::call_body<0>(body, axes); },
        detail::arity<Body>(), std::move(names), where);
    if constexpr (std::is_convertible_v<Result, Expr>) {
      return tensors.front();
    } else {
      return tensors;
    }
  }
}

namespace detail {

Tensor scatter(std::string combiner, const Tensor& base, Shape shape, const Bodies& bodies,
               int takes, Names names, SourceLocation where);

template <typename Body>
Tensor scatter(const char* combiner, const Tensor& base, Shape shape, Body& body, Names names,
               SourceLocation where) {
  if constexpr (takes_vector<Body>) {
    return scatter(
        combiner, base, std::move(shape),
        [&](const std::vector<Expr>& axes) { return to_bodies(body(axes)); }, -1, std::move(names),
        where);
  } else {
    return scatter(
        combiner, base, std::move(shape),
        [&](const std::vector<Expr>& axes) { return call_body<0>(body, axes); }, arity<Body>(),
        std::move(names), where);
  }
}

}  // namespace detail

/// A copy of `base`; then, for every index of the shape in order, base[update.indices] grows by
/// update.value: `scatter_add(B, {m, d}, [&](Expr r, Expr c) { return Update{{idx(r), c}, X(r, c)};
/// })`. An index that is negative or past the end stops the call.
template <typename Body>
Tensor scatter_add(const Tensor& base, Shape shape, Body body, Names names = "scatter_add",
                   SourceLocation where = SourceLocation::current()) {
  return detail::scatter("add", base, std::move(shape), body, std::move(names), where);
}
/// The smaller of the element and the update.
template <typename Body>
Tensor scatter_min(const Tensor& base, Shape shape, Body body, Names names = "scatter_min",
                   SourceLocation where = SourceLocation::current()) {
  return detail::scatter("min", base, std::move(shape), body, std::move(names), where);
}
/// The larger of the element and the update.
template <typename Body>
Tensor scatter_max(const Tensor& base, Shape shape, Body body, Names names = "scatter_max",
                   SourceLocation where = SourceLocation::current()) {
  return detail::scatter("max", base, std::move(shape), body, std::move(names), where);
}
/// The update in place of the element; the last one stays.
template <typename Body>
Tensor scatter(const Tensor& base, Shape shape, Body body, Names names = "scatter",
               SourceLocation where = SourceLocation::current()) {
  return detail::scatter("", base, std::move(shape), body, std::move(names), where);
}

/// Along which dimension of its states a scan runs. In reverse it runs from the last index to the
/// first: its init gives the last steps, in the order of their indices, and its update at t reads
/// the state after t.
struct ScanTime {
  unsigned dimension = 0;
  bool reverse = false;
};

/// A recurrence along dimension 0, or as `time` says: the first steps are `init`, the later ones
/// `update`, in which reads of `state` mean earlier steps.
Tensor scan(const Tensor& init, const Tensor& update, const Tensor& state,
            std::vector<Tensor> inputs = {}, Names names = "scan", ScanTime time = {},
            SourceLocation where = SourceLocation::current());
/// Several states that advance together.
std::vector<Tensor> scan(const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                         const std::vector<Tensor>& state, std::vector<Tensor> inputs = {},
                         Names names = "scan", ScanTime time = {},
                         SourceLocation where = SourceLocation::current());

}  // namespace client
}  // namespace kiln

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/expr.h>

namespace kiln {
inline namespace client {

/// Which values of its axes a reduction takes, and what it starts from.
struct Reduced {
  /// Where it does not hold, nothing is combined and nothing is read.
  std::optional<Expr> where = {};
  /// Instead of the identity; one a value of the reducer, over the axes outside of the reduction.
  std::vector<Expr> init = {};
};

namespace detail {
struct ReducerNode;

/// A combiner of the combiner table over all values of the axes, outermost first.
Expr reduce(std::string_view combiner, const Expr& source, const std::vector<ReduceAxis>& axes,
            const Reduced& options = {});
}  // namespace detail

/// What combines values in a reduction: see comm_reducer.
class Reducer {
 public:
  using Values = std::vector<Expr>;

  /// The reduction of one value.
  Expr operator()(const Expr& value, const std::vector<ReduceAxis>& axes,
                  const Reduced& options = {}) const;
  Expr operator()(const Expr& value, const ReduceAxis& axis, const Reduced& options = {}) const {
    return (*this)(value, std::vector{axis}, options);
  }
  /// Of several at once: all results.
  Values operator()(const Values& values, const std::vector<ReduceAxis>& axes,
                    const Reduced& options = {}) const;
  Values operator()(const Values& values, const ReduceAxis& axis,
                    const Reduced& options = {}) const {
    return (*this)(values, std::vector{axis}, options);
  }

  explicit Reducer(std::shared_ptr<const detail::ReducerNode> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const detail::ReducerNode> node_;
};

/// A reducer of one value of a type: `combine` gives what the value so far, then the next one
/// become, and `identity` leaves any value as it is. In which order values are combined must not
/// matter.
Reducer comm_reducer(DType type, const std::function<Expr(Expr, Expr)>& combine,
                     const Expr& identity, std::string name = "reduce",
                     SourceLocation where = SourceLocation::current());
/// The same of several values at once, which become as many.
Reducer comm_reducer(
    const std::vector<DType>& types,
    const std::function<Reducer::Values(Reducer::Values, Reducer::Values)>& combine,
    const Reducer::Values& identities, std::string name = "reduce",
    SourceLocation where = SourceLocation::current());

}  // namespace client
}  // namespace kiln

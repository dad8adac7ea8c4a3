// Reductions and reducers of the program's own: a function is called once, on parameters, and what
// it returns is the combination.
//
//   make_reducer({int64, float32}, f, ..)  ->  f((a0, a1), (b0, b1)) as two expressions
#include <algorithm>

#include <kiln/reducer.h>

#include "client/cpp/fail.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// A number of the program takes the type; anything else must have it.
Expr typed(const Expr& value, DType type, const std::string& what) {
  if (is_literal(value)) return cast(value, type);
  if (value.dtype() == type) return value;
  fail(ErrorKind::InvalidArgument, "REDUCER", "{} is {}, but must be {}; cast it", what,
       name_of(value.dtype()), name_of(type));
}

std::vector<Expr> starts(const std::string& name, const std::vector<Expr>& sources,
                         const std::vector<Expr>& init) {
  if (!init.empty() && init.size() != sources.size()) {
    fail(ErrorKind::InvalidArgument, "REDUCTION_INIT",
         "{} combines {} value{}, but its init gives {}", name, sources.size(),
         sources.size() == 1 ? "" : "s", init.size());
  }
  std::vector<Expr> result;
  for (std::size_t i = 0; i < init.size(); ++i)
    result.push_back(typed(init[i], sources[i].dtype(), fmt::format("the init of {}", name)));
  return result;
}

void check(const std::string& name, const std::vector<ReduceAxis>& axes, const Reduced& options) {
  if (axes.empty()) {
    fail(ErrorKind::InvalidArgument, "REDUCTION_AXES",
         "{} needs at least one axis to run over: make one with reduce_axis", name);
  }
  if (!options.where || options.where->dtype() == boolean) return;
  fail(ErrorKind::InvalidArgument, "REDUCTION_CONDITION",
       "where of {} takes a bool, but got {}; write a comparison", name,
       name_of(options.where->dtype()));
}

}  // namespace

Expr reduce(std::string_view combiner, const Expr& source, const std::vector<ReduceAxis>& axes,
            const Reduced& options) {
  const std::string name(combiner);
  check(name, axes, options);
  const bool logical = border::is_logical_combiner(combiner);
  if (logical != (source.dtype() == boolean)) {
    fail(ErrorKind::InvalidArgument, "OPERAND_TYPE", "{} takes {}, but got {}", combiner,
         logical ? "a bool" : "a number", name_of(source.dtype()));
  }
  const Expr fixed = cast(source, source.dtype());
  ReductionValue value{.combiner = name, .reducer = nullptr, .sources = {fixed}, .axes = axes};
  value.condition = options.where;
  value.init = starts(name, value.sources, options.init);
  return make_expr(fixed.dtype(), std::move(value));
}

}  // namespace detail

Reducer::Values Reducer::operator()(const Values& values, const std::vector<ReduceAxis>& axes,
                                    const Reduced& options) const {
  detail::check(node_->name, axes, options);
  const std::size_t count = node_->types.size();
  if (values.size() != count) {
    detail::fail(ErrorKind::InvalidArgument, "REDUCTION_SOURCES",
                 "{} combines {} value{}, but got {}", node_->name, count, count == 1 ? "" : "s",
                 values.size());
  }
  detail::ReductionValue value{.combiner = {}, .reducer = node_, .sources = {}, .axes = axes};
  for (std::size_t i = 0; i < count; ++i) {
    value.sources.push_back(
        detail::typed(values[i], node_->types[i], fmt::format("value {} of {}", i, node_->name)));
  }
  value.condition = options.where;
  value.init = detail::starts(node_->name, value.sources, options.init);
  Values results;
  for (; value.output < count; ++value.output)
    results.push_back(detail::make_expr(node_->types[value.output], value));
  return results;
}

Expr Reducer::operator()(const Expr& value, const std::vector<ReduceAxis>& axes,
                         const Reduced& options) const {
  return (*this)(Values{value}, axes, options)[0];
}

namespace {

using Combine = std::function<Reducer::Values(Reducer::Values, Reducer::Values)>;

Reducer make_reducer(const std::vector<DType>& types, const Combine& combine,
                     const Reducer::Values& identities, std::string name) {
  const std::size_t count = types.size();
  Reducer::Values left;
  Reducer::Values right;
  for (std::size_t i = 0; i < count; ++i) {
    const auto position = static_cast<std::uint32_t>(i);
    left.push_back(detail::make_expr(types[i], detail::ParameterValue{position}));
    right.push_back(detail::make_expr(
        types[i], detail::ParameterValue{position + static_cast<std::uint32_t>(count)}));
  }
  const Reducer::Values results = combine(left, right);
  if (count == 0 || results.size() != count || identities.size() != count) {
    detail::fail(ErrorKind::InvalidArgument, "REDUCER",
                 "reducer {} combines {} value{}, but has {} results and {} identities", name,
                 count, count == 1 ? "" : "s", results.size(), identities.size());
  }
  detail::ReducerNode node{
      .name = std::move(name), .types = types, .identities = {}, .results = {}};
  for (std::size_t i = 0; i < count; ++i) {
    node.identities.push_back(
        detail::typed(identities[i], types[i], fmt::format("identity {} of {}", i, node.name)));
    node.results.push_back(
        detail::typed(results[i], types[i], fmt::format("result {} of {}", i, node.name)));
  }
  return Reducer(std::make_shared<const detail::ReducerNode>(std::move(node)));
}

}  // namespace

Reducer comm_reducer(const std::vector<DType>& types, const Combine& combine,
                     const Reducer::Values& identities, std::string name, SourceLocation where) {
  return detail::at_line(where,
                         [&] { return make_reducer(types, combine, identities, std::move(name)); });
}

Reducer comm_reducer(DType type, const std::function<Expr(Expr, Expr)>& combine,
                     const Expr& identity, std::string name, SourceLocation where) {
  return comm_reducer(
      std::vector{type},
      [&](const Reducer::Values& left, const Reducer::Values& right) {
        return Reducer::Values{combine(left[0], right[0])};
      },
      {identity}, std::move(name), where);
}

}  // namespace client
}  // namespace kiln

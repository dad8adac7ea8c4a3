// `reducer` statements as reducers of the definition, and what the name of a result means.
//
//   reducer argmax((i: int64, v: float32), (j, w)) = ..     argmax.v1  ->  result 1
#include <charconv>

#include "compiler/language/suggest.h"
#include "compiler/language/text/build_text.h"

namespace kiln::language::syntax {
namespace {

DType type_named(const Workspace& work, const ReducerValue& value) {
  if (const auto type = find_dtype(value.type)) return *type;
  std::vector<std::string_view> known;
  for (int i = 1; dtype_from_number(i); ++i)
    known.push_back(name_of(*dtype_from_number(i)));
  work.source.refuse(value.type_place, "unknown type {}{}", value.type.substr(0, 64),
                     suggestion(value.type, known));
}

void check_name(const Workspace& work, const ReducerText& text) {
  if (find_combiner(text.name)) {
    work.source.refuse(text.place, "{} is a reducer of the language; give yours another name",
                       text.name);
  }
  if (work.reducers.contains(text.name)) {
    work.source.refuse(text.place, "reducer {} is defined twice", text.name);
  }
}

std::vector<DType> types_of(const Workspace& work, const ReducerText& text) {
  if (text.left.size() != text.right.size()) {
    work.source.refuse(text.place, "reducer {} has {} value{} on the left, but {} on the right",
                       text.name, text.left.size(), text.left.size() == 1 ? "" : "s",
                       text.right.size());
  }
  std::vector<DType> types;
  for (size_t i = 0; i < text.left.size(); ++i) {
    const ReducerValue& left = text.left[i];
    const ReducerValue& right = text.right[i];
    if (left.type.empty()) {
      work.source.refuse(left.place, "{} has no type; write one, as in {}: float32", left.name,
                         left.name);
    }
    types.push_back(type_named(work, left));
    if (right.type.empty() || type_named(work, right) == types.back()) continue;
    work.source.refuse(right.type_place, "{} is {}, but {} on the left is {}", right.name,
                       right.type, left.name, left.type);
  }
  return types;
}

std::vector<ReducerValue> parameters_of(const Workspace& work, const ReducerText& text) {
  std::vector<ReducerValue> parameters;
  for (const auto* side : {&text.left, &text.right}) {
    for (const ReducerValue& value : *side) {
      if (work.sizes.contains(value.name)) {
        work.source.refuse(value.place, "{} is a size already; give the value another name",
                           value.name);
      }
      for (const ReducerValue& other : parameters) {
        if (other.name != value.name) continue;
        work.source.refuse(value.place, "reducer {} has two values called {}", text.name,
                           value.name);
      }
      parameters.push_back(value);
    }
  }
  return parameters;
}

std::vector<ExprId> build_list(Workspace& work, const ReducerText& text,
                               const std::vector<int>& nodes, std::string_view what,
                               const std::vector<ReducerValue>& parameters,
                               const std::vector<DType>& types) {
  if (nodes.size() != types.size()) {
    work.source.refuse(text.place, "reducer {} combines {} value{}, but has {} {}", text.name,
                       types.size(), types.size() == 1 ? "" : "s", nodes.size(), what);
  }
  std::vector<ExprId> list;
  for (size_t i = 0; i < nodes.size(); ++i) {
    ExpressionBuilder builder(work, {});
    list.push_back(builder.of_reducer(nodes[i], types[i], parameters, types));
    const DType actual = work.definition.expressions[list.back()].type;
    if (actual == types[i]) continue;
    work.source.refuse(work.tree.nodes[static_cast<size_t>(nodes[i])].place,
                       "{} is {}, but this is {}; cast it, as in {}(...)", text.left[i].name,
                       types[i], actual, types[i]);
  }
  return list;
}

}  // namespace

void build_reducer(Workspace& work, const ReducerText& text) {
  check_name(work, text);
  const std::vector<DType> types = types_of(work, text);
  const std::vector<ReducerValue> parameters = parameters_of(work, text);
  const std::vector<ExprId> results =
      build_list(work, text, text.results, "results", parameters, types);
  const std::vector<ExprId> identities =
      build_list(work, text, text.identities, "identities", {}, types);
  work.reducers.emplace(text.name, static_cast<ReducerId>(work.definition.reducers.size()));
  work.definition.reducers.push_back({types, identities, results});
  SourceMap::ReducerNames names = {std::string(text.name), {}};
  for (const ReducerValue& parameter : parameters)
    names.parameters.emplace_back(parameter.name);
  work.names.reducers.push_back(std::move(names));
}

std::optional<NamedReducer> find_reducer(const Workspace& work, std::string_view name) {
  const auto whole = work.reducers.find(name);
  if (whole != work.reducers.end()) return NamedReducer{whole->second, std::nullopt};
  const size_t dot = name.rfind(".v");
  if (dot == std::string_view::npos) return std::nullopt;
  const auto reducer = work.reducers.find(name.substr(0, dot));
  if (reducer == work.reducers.end()) return std::nullopt;
  const std::string_view digits = name.substr(dot + 2);
  uint32_t output = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), output);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return NamedReducer{reducer->second, output};
}

}  // namespace kiln::language::syntax

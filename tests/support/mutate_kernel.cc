// Changes one place of a kernel's text: tokens are sorted by what they mean (an index, an extent, a
// factor of a step), one is drawn, and another of its kind put there.
//
//   C[i, j] = A[i, k] ..  ->  C[i, j] = A[j, k] ..     split(C.i, factor=4)  ->  factor=3
//
// Such texts are nearly right, which is where the checks must hold.
#include "tests/support/mutate_kernel.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "compiler/language/tables/step.h"
#include "compiler/language/text/syntax.h"
#include "runtime/core/dtype.h"

namespace kiln::testing {
namespace {

namespace syntax = language::syntax;
using syntax::Node;
using syntax::Place;
using syntax::Statement;
using syntax::Token;
using syntax::TokenKind;

using Texts = std::vector<std::string>;

/// Bytes begin .. end - 1 of the text, and what shall stand there.
struct Edit {
  Place begin;
  Place end;
  std::string text;
};

template <typename T>
void drop_repeats(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// What stands where in a text.
class Sites {
 public:
  explicit Sites(std::string_view text) : source_(text, "mutated.kiln") {
    tokens_ = syntax::tokenize(source_);
    tree_ = syntax::parse(source_, 512, 100'000);
    for (const syntax::KernelText& kernel : tree_.kernels) {
      for (const syntax::TypedName& parameter : kernel.parameters)
        add_tensor(parameter);
      add_statements(kernel.statements, kernel.closing);
      for (const syntax::ScheduleBlock& block : kernel.schedules)
        add_schedule(block);
    }
    for (Texts* names : {&axis_names, &size_names, &tensor_names, &step_axes})
      drop_repeats(*names);
  }

  std::string_view text() const { return source_.text(); }
  std::string_view text(size_t token) const { return tokens_[token].text; }
  const Token& token(size_t index) const { return tokens_[index]; }
  Place begin(size_t token) const { return tokens_[token].place; }
  Place end(size_t token) const { return tokens_[token].place + tokens_[token].text.size(); }
  std::string text_between(Place from, Place to) const {
    return std::string(source_.text().substr(from, to - from));
  }
  /// The expressions between a bracket and its partner, as first token and the one past the last.
  std::vector<std::pair<size_t, size_t>> list_in(size_t open) const;

  // Tokens.
  std::vector<size_t> indices;    // names and numbers in the indices of a tensor
  std::vector<size_t> accesses;   // names of tensors before their indices
  std::vector<size_t> extents;    // names and numbers of shapes and ranges
  std::vector<size_t> shapes;     // brackets that open a shape
  std::vector<size_t> axes;       // where an axis is defined or named by a step
  std::vector<size_t> numbers;    // among the values
  std::vector<size_t> types;      // of tensors and casts
  std::vector<size_t> signs;      // of operators
  std::vector<size_t> functions;  // operators written as calls
  std::vector<size_t> combiners;
  std::vector<size_t> factors;                      // numbers of steps
  std::vector<std::pair<Place, Place>> steps;       // from the name to behind the bracket
  std::vector<Place> schedule_ends;                 // before the closing brace
  std::vector<std::pair<Place, Place>> statements;  // leaves, without blocks

  Texts axis_names;
  Texts size_names;
  Texts tensor_names;
  Texts step_axes;  // as steps name them: C.i

 private:
  /// What a number or a name means where it stands.
  enum class Role : uint8_t { Value, Index, Extent };

  size_t token_at(Place place) const {
    const auto found =
        std::lower_bound(tokens_.begin(), tokens_.end(), place,
                         [](const Token& token, Place wanted) { return token.place < wanted; });
    return static_cast<size_t>(found - tokens_.begin());
  }

  void add_tensor(const syntax::TypedName& tensor);
  void add_statements(const std::vector<Statement>& list, Place end);
  void add_assignment(const Statement& statement);
  void add_range(int node);
  void add_schedule(const syntax::ScheduleBlock& block);
  void add_node(int id, Role role);
  void add_leaf(const Node& node, Role role);

  syntax::Source source_;
  std::vector<Token> tokens_;
  syntax::Tree tree_;
};

std::vector<std::pair<size_t, size_t>> Sites::list_in(size_t open) const {
  std::vector<std::pair<size_t, size_t>> list;
  int depth = 0;
  size_t first = open + 1;
  for (size_t at = open; at < tokens_.size(); ++at) {
    const std::string_view sign = text(at);
    if (sign == "(" || sign == "[") ++depth;
    const bool closes = (sign == ")" || sign == "]") && --depth == 0;
    if (closes || (sign == "," && depth == 1)) {
      if (at > first) list.emplace_back(first, at);
      first = at + 1;
    }
    if (closes) break;
  }
  return list;
}

void Sites::add_tensor(const syntax::TypedName& tensor) {
  tensor_names.emplace_back(tensor.name);
  types.push_back(token_at(tensor.type_place));
  if (text(types.back() + 1) == "[") shapes.push_back(types.back() + 1);
  for (const int extent : tensor.shape)
    add_node(extent, Role::Extent);
}

void Sites::add_statements(const std::vector<Statement>& list, Place end) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Statement& statement = list[i];
    // A statement ends where the next token begins that is none of its own.
    const size_t next = token_at(i + 1 < list.size() ? list[i + 1].place : end);
    if (statement.kind != Statement::Kind::ScanBlock && next > 0)
      statements.emplace_back(statement.place, this->end(next - 1));
    switch (statement.kind) {
      case Statement::Kind::Declare: add_tensor(statement.declared); break;
      case Statement::Kind::Assign: add_assignment(statement); break;
      case Statement::Kind::ScanBlock:
        axis_names.emplace_back(statement.time);
        axes.push_back(token_at(statement.place) + 1);
        // Behind its last statement stands the brace, which belongs to none.
        add_statements(statement.statements,
                       begin(token_at(i + 1 < list.size() ? list[i + 1].place : end) - 1));
        break;
      case Statement::Kind::ScatterCall:
        for (const int range : statement.scatter.ranges)
          add_range(range);
        for (const int argument : statement.scatter.arguments)
          add_node(argument, Role::Value);
        break;
      // Reducers stay: who writes one promises that the order of values does not matter, which no
      // one checks.
      default: break;
    }
  }
}

void Sites::add_assignment(const Statement& statement) {
  accesses.push_back(token_at(statement.place));
  for (const int index : statement.assignment.indices) {
    const Node& node = tree_.nodes[static_cast<size_t>(index)];
    if (node.kind == Node::Kind::Name) {
      axis_names.emplace_back(node.text);
      axes.push_back(token_at(node.place));
    }
    add_node(index, Role::Index);
  }
  for (const int value : statement.assignment.values)
    add_node(value, Role::Value);
}

/// k < n, or a <= k < n
void Sites::add_range(int id) {
  const Node& range = tree_.nodes[static_cast<size_t>(id)];
  add_node(id, Role::Extent);
  const Node* left = &range;
  while (left->kind == Node::Kind::Apply && !left->children.empty()) {
    const bool is_chain =
        left->children.size() == 2 &&
        tree_.nodes[static_cast<size_t>(left->children[0])].kind == Node::Kind::Apply;
    const Node& first = tree_.nodes[static_cast<size_t>(left->children[0])];
    left = is_chain ? &tree_.nodes[static_cast<size_t>(first.children.back())] : &first;
  }
  if (left->kind != Node::Kind::Name) return;
  axis_names.emplace_back(left->text);
  axes.push_back(token_at(left->place));
}

void Sites::add_schedule(const syntax::ScheduleBlock& block) {
  schedule_ends.push_back(block.end - 1);
  for (const syntax::StepCall& step : block.steps) {
    size_t close = token_at(step.place);
    while (text(close) != ")")
      ++close;
    steps.emplace_back(step.place, end(close));
    for (size_t at = token_at(step.place) + 2; at < close; ++at) {
      if (token(at).kind == TokenKind::Integer) factors.push_back(at);
      if (token(at).kind != TokenKind::Name || text(at + 1) == "=") continue;
      axes.push_back(at);
      step_axes.emplace_back(text(at));
    }
  }
}

void Sites::add_leaf(const Node& node, Role role) {
  const size_t at = token_at(node.place);
  if (role == Role::Index) indices.push_back(at);
  if (role == Role::Extent) extents.push_back(at);
  if (role == Role::Value && node.kind != Node::Kind::Name) numbers.push_back(at);
  if (role == Role::Extent && node.kind == Node::Kind::Name) size_names.emplace_back(node.text);
}

void Sites::add_node(int id, Role role) {
  const Node& node = tree_.nodes[static_cast<size_t>(id)];
  const auto add_children = [&](Role of_children) {
    for (const int child : node.children)
      add_node(child, of_children);
  };
  switch (node.kind) {
    case Node::Kind::Index:
      accesses.push_back(token_at(node.place));
      return add_children(Role::Index);
    case Node::Kind::Apply: signs.push_back(token_at(node.place)); return add_children(role);
    case Node::Kind::Call:
      (find_dtype(node.text) ? types : functions).push_back(token_at(node.place));
      return add_children(role);
    case Node::Kind::Reduce:
      combiners.push_back(token_at(node.place));
      for (size_t i = 0; i < node.children.size(); ++i) {
        i < node.ranges ? add_range(node.children[i]) : add_node(node.children[i], role);
      }
      return;
    default: add_leaf(node, role);
  }
}

/// Draws one edit of a kind.
class Mutator {
 public:
  Mutator(const Sites& sites, Random& random) : sites_(sites), random_(random) {}

  std::optional<std::vector<Edit>> draw(MutationKind kind) {
    switch (kind) {
      case MutationKind::Index: return index();
      case MutationKind::Extent: return extent();
      case MutationKind::Axis: return axis();
      case MutationKind::Step: return step();
      case MutationKind::Factor: return factor();
      case MutationKind::Constant: return constant();
      case MutationKind::Type: return type();
      case MutationKind::Operator: return operation();
      case MutationKind::Tensor: return tensor();
      case MutationKind::Statement: return statement();
    }
    return std::nullopt;
  }

 private:
  using Edits = std::optional<std::vector<Edit>>;

  Edit replaced(size_t token, std::string text) const {
    return {sites_.begin(token), sites_.end(token), std::move(text)};
  }
  Edits replace(size_t token, std::string text) const {
    return std::vector{replaced(token, std::move(text))};
  }
  /// Another element of the list than `now`; `now` when there is none.
  std::string other(const Texts& list, std::string_view now) {
    Texts rest;
    std::copy_if(list.begin(), list.end(), std::back_inserter(rest),
                 [&](const std::string& text) { return text != now; });
    return rest.empty() ? std::string(now) : random_.pick(rest);
  }

  /// Two of a list of expressions change places, one is dropped, or one comes twice.
  Edits change_list(size_t open) {
    const auto list = sites_.list_in(open);
    if (list.empty()) return std::nullopt;
    const auto range = [&](size_t i) {
      return std::pair(sites_.begin(list[i].first), sites_.end(list[i].second - 1));
    };
    const size_t i = static_cast<size_t>(random_.below(static_cast<int>(list.size())));
    const auto [begin, end] = range(i);
    const int choice = random_.below(4);
    if (choice == 0) return std::vector{Edit{end, end, ", " + sites_.text_between(begin, end)}};
    if (choice == 1 || list.size() == 1) {
      // With the comma on one of its sides.
      const bool is_last = i + 1 == list.size();
      const Place from = is_last && i > 0 ? sites_.begin(list[i].first - 1) : begin;
      const Place to = is_last ? end : sites_.begin(list[i + 1].first);
      return std::vector{Edit{from, to, ""}};
    }
    const size_t j = (i + 1) % list.size();
    const auto [other_begin, other_end] = range(j);
    return std::vector{Edit{begin, end, sites_.text_between(other_begin, other_end)},
                       Edit{other_begin, other_end, sites_.text_between(begin, end)}};
  }

  Edits index() {
    if (random_.chance(0.15) && !sites_.accesses.empty())
      return change_list(random_.pick(sites_.accesses) + 1);
    if (sites_.indices.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.indices);
    const std::string now(sites_.text(at));
    switch (random_.below(14)) {
      case 0: return replace(at, fmt::format("({} + 1)", now));
      case 1: return replace(at, fmt::format("({} - 1)", now));
      case 2: return replace(at, fmt::format("({} + {})", now, random_.between(2, 40)));
      case 3: return replace(at, fmt::format("({} * 2)", now));
      case 4: return replace(at, fmt::format("({} // 2)", now));
      case 5: return replace(at, fmt::format("({} % 3)", now));
      case 6: return replace(at, fmt::format("(-{})", now));
      case 7: return replace(at, fmt::format("({} * {})", now, now));
      case 8: return replace(at, other(sites_.size_names, now));
      case 9: return replace(at, fmt::format("({} - {} - 1)", other(sites_.size_names, now), now));
      case 10: return replace(at, std::to_string(random_.between(-1, 3)));
      case 11: return replace(at, extreme_integer());
      case 12: return replace(at, fmt::format("min({}, 4)", now));
      default: return replace(at, other(sites_.axis_names, now));
    }
  }

  Edits extent() {
    if (random_.chance(0.15) && !sites_.shapes.empty())
      return change_list(random_.pick(sites_.shapes));
    if (sites_.extents.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.extents);
    const std::string now(sites_.text(at));
    switch (random_.below(9)) {
      case 0: return replace(at, fmt::format("({} + 1)", now));
      case 1: return replace(at, fmt::format("({} - 1)", now));
      case 2: return replace(at, fmt::format("({} * 2)", now));
      case 3: return replace(at, fmt::format("({} // 2)", now));
      case 4: return replace(at, std::to_string(random_.between(0, 9)));
      case 5: return replace(at, std::to_string(-random_.between(1, 5)));
      case 6: return replace(at, extreme_integer());
      case 7: return replace(at, "fresh");
      default: return replace(at, other(sites_.size_names, now));
    }
  }

  Edits axis() {
    if (sites_.axes.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.axes);
    const std::string_view now = sites_.text(at);
    const bool of_a_step =
        std::find(sites_.step_axes.begin(), sites_.step_axes.end(), now) != sites_.step_axes.end();
    if (!of_a_step) {
      return replace(at, random_.chance(0.2) ? "fresh" : other(sites_.axis_names, now));
    }
    switch (random_.below(4)) {
      case 0:
        return replace(at, fmt::format("{}.{}", now, random_.chance(0.5) ? "outer" : "inner"));
      case 1:
        return replace(
            at, fmt::format("{}.{}", other(sites_.tensor_names, ""), other(sites_.axis_names, "")));
      default: return replace(at, other(sites_.step_axes, now));
    }
  }

  std::string random_step() {
    const auto any = [&] {
      if (!sites_.step_axes.empty() && random_.chance(0.6)) return random_.pick(sites_.step_axes);
      return other(sites_.tensor_names, "") + "." + other(sites_.axis_names, "");
    };
    static const Texts kThreads = {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y",
                                   "vthread"};
    static const Texts kScopes = {"local", "shared", "global"};
    const std::string tensor = other(sites_.tensor_names, "");
    switch (random_.below(14)) {
      case 0: return fmt::format("split({}, factor={})", any(), random_.between(1, 9));
      case 1: return fmt::format("split({}, parts={})", any(), random_.between(1, 9));
      case 2: return fmt::format("fuse({}, {})", any(), any());
      case 3: return fmt::format("reorder({}, {})", any(), any());
      case 4: return fmt::format("tile({}, {}, {}, 4)", any(), any(), random_.between(1, 9));
      case 5: return fmt::format("bind({}, {})", any(), random_.pick(kThreads));
      case 6: return fmt::format("parallel({})", any());
      case 7: return fmt::format("unroll({})", any());
      case 8: return fmt::format("compute_inline({})", tensor);
      case 9: return fmt::format("compute_at({}, {})", tensor, any());
      case 10: return fmt::format("cache_write({}, {})", tensor, random_.pick(kScopes));
      case 11: return fmt::format("rfactor({})", any());
      case 12: return fmt::format("set_scope({}, {})", tensor, random_.pick(kScopes));
      default: return fmt::format("vectorize({})", any());
    }
  }

  Edits step() {
    if (sites_.schedule_ends.empty()) return std::nullopt;
    if (sites_.steps.empty() || random_.chance(0.25)) {
      const Place at = sites_.steps.empty() ? random_.pick(sites_.schedule_ends)
                                            : random_.pick(sites_.steps).second;
      return std::vector{Edit{at, at, " " + random_step() + " "}};
    }
    const size_t i = static_cast<size_t>(random_.below(static_cast<int>(sites_.steps.size())));
    const auto [begin, end] = sites_.steps[i];
    const auto [other_begin, other_end] = random_.pick(sites_.steps);
    const std::string text = sites_.text_between(begin, end);
    switch (random_.below(5)) {
      case 0: return std::vector{Edit{begin, end, ""}};
      case 1: return std::vector{Edit{other_end, other_end, " " + text}};
      case 2:
        if (begin == other_begin) return std::nullopt;
        return std::vector{Edit{begin, end, sites_.text_between(other_begin, other_end)},
                           Edit{other_begin, other_end, text}};
      case 3: return std::vector{Edit{begin, end, random_step()}};
      default: {
        const auto table = language::step_table();
        const auto& row = table[static_cast<size_t>(random_.below(static_cast<int>(table.size())))];
        return std::vector{
            Edit{begin, end, std::string(row.spelling) + text.substr(text.find('('))}};
      }
    }
  }

  Edits factor() {
    if (sites_.factors.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.factors);
    static const Texts kNumbers = {"0", "1", "2", "3", "5", "7", "13", "16", "64", "100", "4096"};
    if (random_.chance(0.1)) return replace(at, extreme_integer());
    if (random_.chance(0.1)) return replace(at, std::to_string(-random_.between(1, 5)));
    return replace(at, other(kNumbers, sites_.text(at)));
  }

  Edits constant() {
    if (sites_.numbers.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.numbers);
    static const Texts kNumbers = {"0",    "1",       "2",     "3",    "7",   "0.5",  "-1",
                                   "-2.5", "1e30",    "1e-40", "255",  "256", "-129", "65536",
                                   "nan",  "1000000", "1e308", "true", "0.0", "-0.0", "inf",
                                   "100",  "31",      "32",    "64"};
    if (random_.chance(0.1)) return replace(at, "(" + extreme_integer() + ")");
    return replace(at, "(" + other(kNumbers, sites_.text(at)) + ")");
  }

  Edits type() {
    if (sites_.types.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.types);
    Texts names;
    for (int number = 1; dtype_from_number(number); ++number)
      names.emplace_back(kiln::name_of(*dtype_from_number(number)));
    return replace(at, other(names, sites_.text(at)));
  }

  Edits operation() {
    const std::vector<std::pair<const std::vector<size_t>*, int>> lists = {
        {&sites_.signs, 0}, {&sites_.functions, 1}, {&sites_.combiners, 2}};
    std::vector<std::pair<size_t, int>> all;
    for (const auto& [list, which] : lists) {
      for (const size_t at : *list)
        all.emplace_back(at, which);
    }
    if (all.empty()) return std::nullopt;
    const auto [at, which] = random_.pick(all);
    const std::string_view now = sites_.text(at);
    if (which == 0) return replace(at, another_sign(now));
    Texts names;
    if (which == 2) {
      for (const language::CombinerRow& row : language::combiner_table())
        names.emplace_back(row.spelling);
      return replace(at, other(names, now));
    }
    const auto found = language::find_operator(now);
    for (const language::OperatorRow& row : language::operator_table()) {
      if (row.infix.empty() && (!found || row.arity == language::row_of(*found).arity))
        names.emplace_back(row.spelling);
    }
    return replace(at, other(names, now));
  }

  std::string another_sign(std::string_view now) {
    static const Texts kArithmetic = {"+", "-", "*", "/", "//", "%"};
    static const Texts kComparisons = {"<", "<=", ">", ">=", "==", "!="};
    static const Texts kAny = {"+", "-", "*", "/",  "//", "%",  "<",  "<=", "==",
                               "&", "|", "^", "<<", ">>", "&&", "||", "**"};
    if (random_.chance(0.2)) return other(kAny, now);
    const bool compares =
        std::find(kComparisons.begin(), kComparisons.end(), now) != kComparisons.end();
    return other(compares ? kComparisons : kArithmetic, now);
  }

  Edits tensor() {
    if (sites_.accesses.empty()) return std::nullopt;
    const size_t at = random_.pick(sites_.accesses);
    return replace(at, other(sites_.tensor_names, sites_.text(at)));
  }

  Edits statement() {
    if (sites_.statements.empty()) return std::nullopt;
    const auto [begin, end] = random_.pick(sites_.statements);
    const auto [other_begin, other_end] = random_.pick(sites_.statements);
    const std::string text = sites_.text_between(begin, end);
    switch (random_.below(3)) {
      case 0: return std::vector{Edit{begin, end, ""}};
      case 1: return std::vector{Edit{other_end, other_end, "\n" + text}};
      default:
        if (begin == other_begin) return std::nullopt;
        return std::vector{Edit{begin, end, sites_.text_between(other_begin, other_end)},
                           Edit{other_begin, other_end, text}};
    }
  }

  std::string extreme_integer() {
    static const Texts kNumbers = {"2147483647",          "2147483648",          "4294967296",
                                   "9223372036854775807", "1099511627776",       "-2147483649",
                                   "4611686018427387904", "-9223372036854775807"};
    return random_.pick(kNumbers);
  }

  const Sites& sites_;
  Random& random_;
};

constexpr std::array kKinds = {
    MutationKind::Index,  MutationKind::Extent,   MutationKind::Axis, MutationKind::Step,
    MutationKind::Factor, MutationKind::Constant, MutationKind::Type, MutationKind::Operator,
    MutationKind::Tensor, MutationKind::Statement};

}  // namespace

std::span<const MutationKind> mutation_kinds() { return kKinds; }

std::string_view name_of(MutationKind kind) {
  switch (kind) {
    case MutationKind::Index: return "index";
    case MutationKind::Extent: return "extent";
    case MutationKind::Axis: return "axis";
    case MutationKind::Step: return "step";
    case MutationKind::Factor: return "factor";
    case MutationKind::Constant: return "constant";
    case MutationKind::Type: return "type";
    case MutationKind::Operator: return "operator";
    case MutationKind::Tensor: return "tensor";
    case MutationKind::Statement: return "statement";
  }
  return "";
}

std::optional<std::string> mutate_kernel(std::string_view text, MutationKind kind, Random& random) {
  const Sites sites(text);
  std::optional<std::vector<Edit>> edits = Mutator(sites, random).draw(kind);
  if (!edits) return std::nullopt;
  std::sort(edits->begin(), edits->end(),
            [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
  std::string result(text);
  for (const Edit& edit : *edits)
    result.replace(edit.begin, edit.end - edit.begin, edit.text);
  if (result == text) return std::nullopt;
  return result;
}

}  // namespace kiln::testing

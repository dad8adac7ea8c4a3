// Recursive descent over tokens, with precedence climbing for infix operators (Pratt 1973). What a
// name means, and whether a range is one, is found later, when the tree is built into a kernel.
#include <algorithm>
#include <charconv>

#include "compiler/language/check/check.h"
#include "compiler/language/describe.h"
#include "compiler/language/text/syntax.h"

namespace kiln::language::syntax {
namespace {

struct Infix {
  std::string_view sign;
  Operator op;
};

/// The infixes of the operator table, and those that only a person writes.
constexpr Infix kMoreInfixes[] = {{"//", Operator::FloorDiv}, {"%", Operator::FloorMod}};

std::optional<Operator> infix_operator(std::string_view sign) {
  for (const OperatorRow& row : operator_table()) {
    if (!row.infix.empty() && row.infix == sign) return row.op;
  }
  for (const Infix& infix : kMoreInfixes) {
    if (infix.sign == sign) return infix.op;
  }
  return std::nullopt;
}

int infix_precedence(Operator op) {
  const bool written_like_a_quotient = op == Operator::FloorDiv || op == Operator::FloorMod;
  return written_like_a_quotient ? precedence_of(Operator::Div) : precedence_of(op);
}

class Parser {
 public:
  Parser(const Source& source, int depth, int nodes)
      : source_(source), tokens_(tokenize(source)), depth_limit_(depth), node_limit_(nodes) {}

  Tree run() {
    while (!at_end()) {
      const bool of_kernel = !tree_.kernels.empty();
      if (is_word("kernel") && tree_.schedules.empty()) {
        kernel();
      } else if (is_word("schedule")) {
        (of_kernel ? tree_.kernels.back().schedules : tree_.schedules).push_back(schedule());
      } else if (is_word("program") && tree_.schedules.empty()) {
        tree_.programs.push_back(parse_program(source_, tokens_, at_, tree_.starts));
      } else {
        refuse_here("expected a {}, but found {}",
                    tree_.schedules.empty()
                        ? "kernel, as in kernel f(A: float32[n]) -> (B: float32[n]) { ... }"
                        : "schedule",
                    shown(peek()));
      }
    }
    if (tree_.kernels.empty() && tree_.schedules.empty()) {
      refuse_here("expected a kernel, but the file has none");
    }
    return std::move(tree_);
  }

 private:
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool at_end() const { return peek().kind == TokenKind::End; }
  bool is_sign(std::string_view sign, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::Sign && peek(ahead).text == sign;
  }
  bool is_name(size_t ahead = 0) const { return peek(ahead).kind == TokenKind::Name; }
  bool is_word(std::string_view word, size_t ahead = 0) const {
    return is_name(ahead) && peek(ahead).text == word;
  }

  template <typename... Args>
  [[noreturn]] void refuse_here(fmt::format_string<Args...> format, Args&&... args) const {
    source_.refuse(peek().place, format, std::forward<Args>(args)...);
  }

  static std::string_view shown(const Token& token) {
    return token.kind == TokenKind::End ? "the end of the file" : token.text.substr(0, 64);
  }

  bool take_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  void expect_sign(std::string_view sign, std::string_view where) {
    if (!take_sign(sign)) refuse_here("expected {} {}, but found {}", sign, where, shown(peek()));
  }
  Token expect_name(std::string_view what) {
    if (!is_name()) refuse_here("expected {}, but found {}", what, shown(peek()));
    return tokens_[at_++];
  }

  int add(Node node) {
    for (const int child : node.children) {
      node.depth = std::max(node.depth, tree_.nodes[child].depth + 1);
    }
    source_.limit(node.place, "an expression", "levels", node.depth, depth_limit_);
    source_.limit(node.place, "the file", "expressions",
                  static_cast<int64_t>(tree_.nodes.size()) + 1, node_limit_);
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }

  /// Where a line of a well laid out file begins.
  Place start_here() {
    tree_.starts.push_back(peek().place);
    return peek().place;
  }

  void kernel() {
    KernelText kernel;
    kernel.place = start_here();
    ++at_;
    kernel.name = expect_name("the name of the kernel").text;
    expect_sign("(", "before the parameters");
    parameters(kernel, false);
    if (take_sign("->")) {
      expect_sign("(", "before the outputs");
      parameters(kernel, true);
    }
    expect_sign("{", "before the body of the kernel");
    while (!is_sign("}")) {
      if (is_word("schedule") && is_name(1) && (is_sign("{", 2) || is_name(2))) {
        kernel.schedules.push_back(schedule());
      } else {
        kernel.statements.push_back(statement());
      }
    }
    kernel.closing = peek().place;
    ++at_;
    tree_.kernels.push_back(std::move(kernel));
  }

  void parameters(KernelText& kernel, bool are_outputs) {
    while (!take_sign(")")) {
      const bool is_output = are_outputs || (is_word("out") && is_name(1));
      if (is_output && !are_outputs) ++at_;
      TypedName parameter = typed_name();
      parameter.is_output = is_output;
      kernel.parameters.push_back(std::move(parameter));
      if (!take_sign(",") && !is_sign(")")) {
        refuse_here("expected , or ) after a parameter, but found {}", shown(peek()));
      }
    }
  }

  /// NAME: [state] TYPE[extent, ...]
  TypedName typed_name() {
    TypedName typed;
    const Token name = expect_name("the name of a tensor");
    typed.name = name.text;
    typed.place = name.place;
    expect_sign(":", fmt::format("and a type after {}", name.text.substr(0, 64)));
    if (is_word("state") && is_name(1)) {
      typed.is_state = true;
      ++at_;
    }
    const Token type = expect_name("a type such as float32[n]");
    typed.type = type.text;
    typed.type_place = type.place;
    if (take_sign("[")) typed.shape = expressions("]");
    return typed;
  }

  Statement statement() {
    const Place place = start_here();
    if (at_end())
      refuse_here("expected }} at the end of the kernel, but found the end of the file");
    if (!is_name()) {
      refuse_here("expected a statement such as C[i] = ..., but found {}", shown(peek()));
    }
    if (begins_scan_block()) return scan_block();
    if ((is_word("var") || is_word("size")) && is_name(1)) {
      Statement statement = {.kind = Statement::Kind::DeclareSize, .place = place};
      statement.declared.is_state = is_word("var");
      ++at_;
      statement.declared.name = expect_name("the name of a size").text;
      statement.declared.place = place;
      return statement;
    }
    if (is_word("reducer") && is_name(1)) return reducer();
    if (is_sign(":", 1)) {
      Statement statement = {.kind = Statement::Kind::Declare, .place = place};
      statement.declared = typed_name();
      return statement;
    }
    if (is_sign("=", 1) && is_name(2) && peek(2).text.starts_with("scatter")) {
      return scatter_call();
    }
    if (is_sign("=", 1) || (is_sign(",", 1) && is_name(2) && !is_sign("[", 3))) return scan_call();
    return assignment();
  }

  Statement reducer() {
    Statement statement = {.kind = Statement::Kind::Reducer, .place = peek().place};
    ++at_;
    ReducerText& text = statement.reducer;
    text.place = peek().place;
    text.name = expect_name("the name of the reducer").text;
    expect_sign("(", "before the values of the reducer");
    text.left = reducer_values();
    expect_sign(",", "between the values on the left and those on the right");
    text.right = reducer_values();
    expect_sign(")", "after the values of the reducer");
    expect_sign("=", "before the results of the reducer");
    do {
      text.results.push_back(expression());
    } while (take_sign(","));
    if (!is_word("identity")) {
      refuse_here("expected identity and what {} starts from, but found {}",
                  text.name.substr(0, 64), shown(peek()));
    }
    ++at_;
    do {
      text.identities.push_back(expression());
    } while (take_sign(","));
    return statement;
  }

  /// a: float32, or (i: int64, v: float32); those on the right may leave the types out.
  std::vector<ReducerValue> reducer_values() {
    std::vector<ReducerValue> values;
    const bool several = take_sign("(");
    do {
      const Token name = expect_name("the name of a value");
      ReducerValue value = {.name = name.text, .place = name.place, .type = {}};
      if (take_sign(":")) {
        const Token type = expect_name("a type such as float32");
        value.type = type.text;
        value.type_place = type.place;
      }
      values.push_back(value);
    } while (several && take_sign(","));
    if (several) expect_sign(")", "after the values");
    return values;
  }

  bool begins_scan_block() const {
    return is_word("scan") && is_name(1) &&
           (is_sign("{", 2) || (is_word("reverse", 2) && is_sign("{", 3)));
  }

  Statement scan_block() {
    Statement statement = {.kind = Statement::Kind::ScanBlock, .place = peek().place};
    ++at_;
    statement.time = expect_name("the time axis").text;
    if (is_word("reverse")) {
      ++at_;
      statement.is_reverse = true;
    }
    expect_sign("{", "before the body of the scan");
    while (!take_sign("}")) {
      if (begins_scan_block()) refuse_here("a scan cannot stand inside a scan");
      statement.statements.push_back(this->statement());
    }
    return statement;
  }

  Statement scan_call() {
    Statement statement = {.kind = Statement::Kind::ScanCall, .place = peek().place};
    ScanCall& scan = statement.scan;
    scan.place = statement.place;
    do {
      scan.names.push_back(expect_name("the name of a tensor").text);
    } while (take_sign(","));
    expect_sign("=", "after the names on the left");
    if (!is_word("scan") || !is_sign("(", 1)) {
      source_.refuse(statement.place,
                     "{} needs its indices on the left: {}[i] = ..., or {}[] = ... without any",
                     scan.names[0], scan.names[0], scan.names[0]);
    }
    at_ += 2;
    for (auto& list : scan.lists) {
      list = tensor_list();
      if (!is_sign(")")) expect_sign(",", "between init, update and state");
    }
    while (!is_sign(")")) {
      scan_option(scan);
      if (!take_sign(",")) break;
    }
    expect_sign(")", "after the state of the scan");
    return statement;
  }

  /// axis=NAME, dimension=1 or reverse
  void scan_option(ScanCall& scan) {
    if (is_word("axis") && is_sign("=", 1)) {
      at_ += 2;
      scan.axis = expect_name("the name of the time axis").text;
    } else if (is_word("dimension") && is_sign("=", 1)) {
      at_ += 2;
      const std::string_view digits = peek().text;
      if (peek().kind != TokenKind::Integer || digits.size() > 4) {
        refuse_here("expected which dimension is time, as in dimension=1, but found {}",
                    shown(peek()));
      }
      std::from_chars(digits.data(), digits.data() + digits.size(), scan.dimension);
      ++at_;
    } else if (is_word("reverse")) {
      scan.is_reverse = true;
      ++at_;
    } else {
      refuse_here("expected axis=, dimension= or reverse, but found {}", shown(peek()));
    }
  }

  Statement scatter_call() {
    Statement statement = {.kind = Statement::Kind::ScatterCall, .place = peek().place};
    ScatterCall& scatter = statement.scatter;
    scatter.place = statement.place;
    scatter.name = expect_name("the name of a tensor").text;
    expect_sign("=", "after the name on the left");
    scatter.function = expect_name("scatter_add").text;
    expect_sign("[", fmt::format("and the axes after {}, as in {}[r < m](B, index, update)",
                                 scatter.function, scatter.function));
    scatter.ranges = expressions("]");
    expect_sign("(", "before the base of the scatter");
    scatter.arguments = expressions(")");
    return statement;
  }

  std::vector<std::string_view> tensor_list() {
    std::vector<std::string_view> names;
    const bool several = take_sign("(");
    do {
      names.push_back(expect_name("the name of a tensor").text);
    } while (several && take_sign(","));
    if (several) expect_sign(")", "after the tensors");
    return names;
  }

  /// Words of other languages where an assignment begins or an expression ends.
  void refuse_word(const Token& word) const {
    if (word.text == "for") {
      source_.refuse(word.place,
                     "there is no for; an assignment to C[i] is made for every i, and sum[k < n] "
                     "runs over k");
    }
    if (word.text == "and" || word.text == "or") {
      source_.refuse(word.place, "there is no {}; write {}", word.text,
                     word.text == "and" ? "&&" : "||");
    }
  }

  Statement assignment() {
    Statement statement = {.kind = Statement::Kind::Assign, .place = peek().place};
    Assignment& assignment = statement.assignment;
    assignment.place = statement.place;
    do {
      const Token name = expect_name("the name of a tensor");
      if (!is_sign("[")) refuse_word(name);
      assignment.names.push_back(name.text);
      expect_sign("[", fmt::format("after {} (an assignment is {}[i] = ...)",
                                   name.text.substr(0, 64), name.text.substr(0, 64)));
      std::vector<int> indices = expressions("]");
      if (assignment.names.size() > 1 && !same(indices, assignment.indices)) {
        source_.refuse(name.place, "the tensors on the left must have the same indices");
      }
      assignment.indices = std::move(indices);
    } while (take_sign(","));
    if (take_sign("+")) {
      source_.refuse(
          statement.place,
          "there is no +=, since an element is assigned once; a sum over k is sum[k < n](...)");
    }
    expect_sign("=", "after the left side");
    do {
      assignment.values.push_back(expression());
    } while (take_sign(","));
    const bool is_tuple = assignment.values.size() == 1 &&
                          tree_.nodes[assignment.values[0]].kind == Node::Kind::Reduce;
    if (assignment.values.size() != assignment.names.size() && !is_tuple) {
      source_.refuse(statement.place, "{} tensor{} on the left, but {} value{} on the right",
                     assignment.names.size(), assignment.names.size() == 1 ? "" : "s",
                     assignment.values.size(), assignment.values.size() == 1 ? "" : "s");
    }
    return statement;
  }

  bool same(const std::vector<int>& a, const std::vector<int>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int x, int y) {
      return tree_.nodes[x].kind == tree_.nodes[y].kind &&
             tree_.nodes[x].text == tree_.nodes[y].text;
    });
  }

  ScheduleBlock schedule() {
    ScheduleBlock block;
    block.place = start_here();
    ++at_;
    block.target = expect_name("a target after schedule: cpu or cuda").text;
    if (is_name()) {
      refuse_here("a schedule names its target alone, as in schedule cpu {{ ... }}, but found {}",
                  shown(peek()));
    }
    expect_sign("{", "before the steps");
    while (!take_sign("}")) {
      StepCall step;
      start_here();
      const Token name = expect_name("a step such as split(C.i, factor=32)");
      step.name = name.text;
      step.place = name.place;
      expect_sign("(", fmt::format("after {}", name.text.substr(0, 64)));
      while (!take_sign(")")) {
        step.arguments.push_back(step_argument());
        if (!take_sign(",") && !is_sign(")")) {
          refuse_here("expected , or ) after an argument, but found {}", shown(peek()));
        }
      }
      block.steps.push_back(std::move(step));
    }
    block.end = tokens_[at_ - 1].place + 1;
    return block;
  }

  StepCall::Argument step_argument() {
    StepCall::Argument argument;
    argument.place = peek().place;
    if (is_name() && is_sign("=", 1)) {
      argument.word = peek().text;
      at_ += 2;
    } else if (is_name()) {
      argument.text = tokens_[at_++].text;
      return argument;
    }
    const bool negative = take_sign("-");
    if (peek().kind != TokenKind::Integer) {
      refuse_here("expected an axis or a number, but found {}", shown(peek()));
    }
    const std::string_view digits = tokens_[at_++].text;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), argument.number);
    if (error != std::errc{}) {
      source_.refuse(argument.place, "{} is too large for a number of a step", digits);
    }
    if (negative) argument.number = -argument.number;
    argument.is_number = true;
    return argument;
  }

  /// Expressions up to `close`, which is taken as well.
  std::vector<int> expressions(std::string_view close) {
    std::vector<int> list;
    while (!take_sign(close)) {
      list.push_back(expression());
      if (!take_sign(",") && !is_sign(close)) {
        refuse_here("expected , or {}, but found {}", close, shown(peek()));
      }
    }
    return list;
  }

  int expression() {
    const int whole = binary(1);
    if (!is_sign("[", 1)) refuse_word(peek());
    return whole;
  }

  int binary(int binding) {
    // What nests by recursion is counted here, what nests to the left in add().
    source_.limit(peek().place, "an expression", "levels", ++open_, depth_limit_);
    int left = unary();
    while (peek().kind == TokenKind::Sign) {
      const auto op = infix_operator(peek().text);
      if (!op || infix_precedence(*op) < binding) break;
      const Place place = peek().place;
      ++at_;
      const int right = binary(infix_precedence(*op) + 1);
      left = add({.kind = Node::Kind::Apply, .place = place, .op = *op, .children = {left, right}});
    }
    --open_;
    return left;
  }

  int unary() {
    const Place place = peek().place;
    std::optional<Operator> op;
    if (is_sign("-")) op = Operator::Negative;
    if (is_sign("!")) op = Operator::Not;
    if (is_sign("~")) op = Operator::BitNot;
    if (!op) return power();
    ++at_;
    source_.limit(peek().place, "an expression", "levels", ++open_, depth_limit_);
    const int operand = unary();
    --open_;
    return add({.kind = Node::Kind::Apply, .place = place, .op = *op, .children = {operand}});
  }

  // ** binds tighter than a sign before it and takes one behind it: -a ** -b is -(a ** (-b)).
  int power() {
    const int base = primary();
    if (!is_sign("**")) return base;
    const Place place = peek().place;
    ++at_;
    source_.limit(peek().place, "an expression", "levels", ++open_, depth_limit_);
    const int exponent = unary();
    --open_;
    return add({.kind = Node::Kind::Apply,
                .place = place,
                .op = Operator::Pow,
                .children = {base, exponent}});
  }

  int primary() {
    const Token token = peek();
    if (token.kind == TokenKind::Integer || token.kind == TokenKind::Float) {
      ++at_;
      const bool is_float = token.kind == TokenKind::Float;
      return add({.kind = is_float ? Node::Kind::Float : Node::Kind::Integer,
                  .place = token.place,
                  .text = token.text});
    }
    if (take_sign("(")) {
      const int inner = expression();
      expect_sign(")", "after the expression");
      return inner;
    }
    if (!is_name()) refuse_here("expected an expression, but found {}", shown(token));
    ++at_;
    if (take_sign("(")) {
      return add({.kind = Node::Kind::Call,
                  .place = token.place,
                  .text = token.text,
                  .children = expressions(")")});
    }
    if (token.text == "if" && is_name()) {
      source_.refuse(token.place, "there is no if; write if_then_else(condition, a, b)");
    }
    if (token.text == "not" && is_name()) {
      source_.refuse(token.place, "there is no not; write !");
    }
    if (!take_sign("[")) {
      return add({.kind = Node::Kind::Name, .place = token.place, .text = token.text});
    }
    std::vector<int> children = expressions("]");
    if (!take_sign("(")) {
      return add({.kind = Node::Kind::Index,
                  .place = token.place,
                  .text = token.text,
                  .children = std::move(children)});
    }
    return reduction(token, std::move(children));
  }

  /// What follows the ranges: (sources, where=condition, init=value or (values))
  int reduction(const Token& name, std::vector<int> ranges) {
    Node node = {.kind = Node::Kind::Reduce,
                 .place = name.place,
                 .text = name.text,
                 .children = std::move(ranges)};
    node.ranges = node.children.size();
    do {
      node.children.push_back(expression());
      ++node.sources;
    } while (take_sign(",") && !is_sign("=", 1));
    if (is_word("where") && is_sign("=", 1)) {
      at_ += 2;
      node.children.push_back(expression());
      node.has_condition = true;
      take_sign(",");
    }
    if (is_word("init") && is_sign("=", 1)) {
      at_ += 2;
      const bool several = node.sources > 1;
      if (several) expect_sign("(", "before the values that the reduction starts from");
      do {
        node.children.push_back(expression());
      } while (several && take_sign(","));
      if (several) expect_sign(")", "after the values that the reduction starts from");
      take_sign(",");
    }
    if (is_name() && is_sign("=", 1)) {
      refuse_here("expected where= or init=, in this order, but found {}", shown(peek()));
    }
    expect_sign(")", "after what is reduced");
    return add(std::move(node));
  }

  const Source& source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_limit_;
  int node_limit_;
  int open_ = 0;
  Tree tree_;
};

}  // namespace

Tree parse(const Source& source, int depth, int nodes) {
  return Parser(source, depth, nodes).run();
}

}  // namespace kiln::language::syntax

// The first step of parsing an expression: its form, by precedence climbing, with precedences as
// print.cc has them. What names mean, and types, come in the second step (build_expr.cc).
#include "compiler/ir/names.h"
#include "compiler/ir/parse_expr.h"
#include "runtime/core/error.h"

namespace kiln::ir {
namespace {

constexpr int kMaxDepth = 200;  // each level takes stack here and in every pass
constexpr int kSum = 9;         // precedence of + and -
constexpr int kUnary = 11;      // and of prefixes, which bind tighter than all infixes

struct Infix {
  Operator op;
  int precedence;
};

/// As print.cc has them.
std::optional<Infix> find_infix(const Token& token) {
  if (token.kind != Token::Kind::Sign) return std::nullopt;
  for (const language::OperatorRow& row : language::operator_table()) {
    if (row.infix.empty() || row.infix != token.text) continue;
    switch (row.op) {
      case Operator::Or: return Infix{row.op, 1};
      case Operator::And: return Infix{row.op, 2};
      case Operator::BitOr: return Infix{row.op, 3};
      case Operator::BitXor: return Infix{row.op, 4};
      case Operator::BitAnd: return Infix{row.op, 5};
      case Operator::Equal:
      case Operator::NotEqual: return Infix{row.op, 6};
      case Operator::ShiftLeft:
      case Operator::ShiftRight: return Infix{row.op, 8};
      case Operator::Add:
      case Operator::Sub: return Infix{row.op, kSum};
      case Operator::Mul:
      case Operator::Div: return Infix{row.op, 10};
      default: return Infix{row.op, 7};
    }
  }
  return std::nullopt;
}

class ExpressionReader {
 public:
  explicit ExpressionReader(TokenReader& reader) : reader_(reader) {}

  /// Operators of one level associate to the left: the right operand has to bind tighter.
  Syntax read(int least) {
    if (++depth_ > kMaxDepth) fail_syntax(reader_.peek(), "the expression is nested too deeply");
    Syntax left = read_unary();
    while (const std::optional<Infix> infix = find_infix(reader_.peek())) {
      if (infix->precedence < least) break;
      const Token at = reader_.take();
      left = operation(at, infix->op, {std::move(left), read(infix->precedence + 1)});
    }
    --depth_;
    return left;
  }

  Syntax read_access(const Token& name) {
    Syntax access{Syntax::Kind::Access, name, name.text, {}, {}, {}, {}, false};
    reader_.expect("[");
    while (!reader_.is("]")) {
      if (reader_.accept("where")) {
        access.predicate.push_back(read(0));
        break;
      }
      access.operands.push_back(read(0));
      if (!reader_.is("where") && !reader_.is("]")) reader_.expect(",");
    }
    reader_.expect("]");
    return access;
  }

 private:
  static Syntax operation(Token at, Operator op, std::vector<Syntax> operands) {
    Syntax syntax;
    syntax.kind = Syntax::Kind::Operator;
    syntax.at = std::move(at);
    syntax.op = op;
    syntax.operands = std::move(operands);
    return syntax;
  }

  Syntax read_unary() {
    const Token at = reader_.peek();
    if (reader_.accept("-")) {
      const Token next = reader_.peek();
      const bool is_number = next.kind == Token::Kind::Integer || next.kind == Token::Kind::Float ||
                             next.text == "inf";
      if (is_number) {  // a negative constant
        Syntax number = read_primary();
        number.text.insert(0, 1, '-');
        return number;
      }
      return negated(at, Operator::Negative);
    }
    if (reader_.accept("!")) return negated(at, Operator::Not);
    if (reader_.accept("~")) return negated(at, Operator::BitNot);
    return read_primary();
  }

  Syntax negated(const Token& at, Operator op) { return operation(at, op, {read(kUnary)}); }

  Syntax read_primary() {
    const Token at = reader_.take();
    if (at.kind == Token::Kind::Sign && at.text == "(") {
      Syntax inner = read(0);
      reader_.expect(")");
      return inner;
    }
    const bool is_float_word = at.text == "inf" || at.text == "nan";
    if (at.kind == Token::Kind::Integer) return read_constant(at, Syntax::Kind::Integer);
    if (at.kind == Token::Kind::Float || is_float_word) {
      return read_constant(at, Syntax::Kind::Float);
    }
    if (at.kind != Token::Kind::Name) {
      fail_syntax(at, at.kind == Token::Kind::End
                          ? std::string("expected an expression, but the text ends")
                          : fmt::format("expected an expression, but got '{}'", at.text));
    }
    if (reader_.is("[")) return read_access(at);
    if (reader_.is("(")) return read_call(at);
    return {Syntax::Kind::Name, at, at.text, {}, {}, {}, {}, false};
  }

  /// `2`, `2:int8`, `inf:float64`
  Syntax read_constant(const Token& at, Syntax::Kind kind) {
    Syntax constant{kind, at, at.text, {}, {}, {}, {}, false};
    if (reader_.accept(":")) {
      const Token type = reader_.take();
      constant.type = find_dtype(type.text);
      if (!constant.type) fail_syntax(type, fmt::format("there is no type '{}'", type.text));
    }
    return constant;
  }

  /// `max(a, b)`, and `reduce_sum(a, v, reassociate)`
  Syntax read_call(const Token& at) {
    Syntax call{Syntax::Kind::Call, at, at.text, {}, {}, {}, {}, false};
    reader_.expect("(");
    while (!reader_.is(")")) {
      if (reader_.accept("reassociate")) {
        call.reassociate = true;
        break;
      }
      call.operands.push_back(read(0));
      if (!reader_.is(")")) reader_.expect(",");
    }
    reader_.expect(")");
    return call;
  }

  TokenReader& reader_;
  int depth_ = 0;
};

}  // namespace

bool TokenReader::is(std::string_view text) const {
  return peek().kind != Token::Kind::End && peek().text == text;
}

bool TokenReader::accept(std::string_view text) {
  if (!is(text)) return false;
  take();
  return true;
}

void TokenReader::expect(std::string_view text) {
  if (accept(text)) return;
  if (peek().kind == Token::Kind::End) {
    fail_syntax(peek(), fmt::format("expected '{}', but the text ends", text));
  }
  fail_syntax(peek(), fmt::format("expected '{}', but got '{}'", text, peek().text));
}

std::string TokenReader::expect_name(std::string_view what) {
  if (peek().kind != Token::Kind::Name) {
    fail_syntax(peek(), fmt::format("expected {}, but got '{}'", what, peek().text));
  }
  if (is_reserved(peek().text)) {
    fail_syntax(peek(), fmt::format("'{}' is a word of the language, not {}", peek().text, what));
  }
  return take().text;
}

int64_t TokenReader::expect_integer(std::string_view what) {
  const Token at = take();
  if (at.kind != Token::Kind::Integer || at.text.size() > 9) {
    fail_syntax(at, fmt::format("expected {}, but got '{}'", what, at.text));
  }
  return std::stoll(at.text);
}

Syntax read_expression(TokenReader& reader, int least) {
  return ExpressionReader(reader).read(least);
}
Syntax read_sum(TokenReader& reader) { return read_expression(reader, kSum); }
Syntax read_access(TokenReader& reader, const Token& name) {
  return ExpressionReader(reader).read_access(name);
}

}  // namespace kiln::ir

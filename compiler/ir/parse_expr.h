#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/lexer.h"
#include "compiler/ir/text_rules.h"

namespace kiln::ir {

/// The tokens of a text, read one after the other.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text) : tokens_(tokenize(text)) {}

  const Token& peek() const { return tokens_[position_]; }
  Token take() { return tokens_[peek().kind == Token::Kind::End ? position_ : position_++]; }
  bool is(std::string_view text) const;
  /// Takes the token if it is this one.
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string expect_name(std::string_view what);
  int64_t expect_integer(std::string_view what);

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

/// An expression as it stands in the text. Types come in a second step, since a constant has the
/// type of what it stands beside.
struct Syntax {
  enum class Kind { Integer, Float, Name, Access, Call, Operator };
  Kind kind = Kind::Name;
  Token at;
  std::string text;  // the number, the name
  Expected type;     // written after a constant
  Operator op = Operator::Add;
  std::vector<Syntax> operands;
  std::vector<Syntax> predicate;  // of an access: one or none
  bool reassociate = false;
};

/// Reads an expression whose operators bind at least this tightly (0: any expression).
Syntax read_expression(TokenReader& reader, int least = 0);
/// The level of + and -: what stands on the sides of a comparison.
Syntax read_sum(TokenReader& reader);
/// `[a, b where p]`, after the name.
Syntax read_access(TokenReader& reader, const Token& name);

/// What names mean at a place of the text.
struct NameScope {
  std::map<std::string, VarRef, std::less<>> vars;
  std::map<std::string, BufferRef, std::less<>> buffers;
};

/// The expression, checked. `expected`: see text_rules.h.
Expr build_expression(const Syntax& syntax, const NameScope& names, Expected expected);
/// As above, and the result must be of this type, with one lane.
Expr build_typed(const Syntax& syntax, const NameScope& names, Type type);
/// The indices of an access and its predicate (null if none), for a buffer that is known.
struct Access {
  BufferRef buffer;
  std::vector<Expr> indices;
  Expr predicate;
};
Access build_access(const Syntax& syntax, const NameScope& names);

}  // namespace kiln::ir

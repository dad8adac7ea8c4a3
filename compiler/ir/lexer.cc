// Cuts the lowered text into tokens. A dot belongs to a name when a name goes on behind it
// (i.outer), and to a number when a digit follows; else it is half of a range, so that 0..n is
// three tokens.
#include "compiler/ir/lexer.h"

#include <array>
#include <cctype>

#include "compiler/ir/names.h"
#include "runtime/core/error.h"

namespace kiln::ir {
namespace {

/// Longer ones first.
constexpr auto kSigns = std::to_array<std::string_view>({
    "..", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "(", ")", "[", "]", "{", "}",
    ",",  ":",  "#",  "=",  "<",  ">",  "+",  "-",  "*",  "/", "!", "~", "&", "|", "^",
});

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    do {
      skip_space();
      tokens.push_back(next());
    } while (tokens.back().kind != Token::Kind::End);
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  void advance() {
    if (text_[position_++] == '\n') {
      ++line_;
      column_ = 0;
    }
    ++column_;
  }

  void skip_space() {
    while (std::isspace(static_cast<unsigned char>(peek())) != 0)
      advance();
  }

  Token take(Token::Kind kind, size_t length) {
    Token token{kind, std::string(text_.substr(position_, length)), line_, column_};
    for (size_t i = 0; i < length; ++i)
      advance();
    return token;
  }

  Token next() {
    if (position_ >= text_.size()) return {Token::Kind::End, "", line_, column_};
    if (is_digit(peek())) return number();
    if (is_name_char(peek())) return take(Token::Kind::Name, name_length());
    for (const std::string_view sign : kSigns) {
      if (text_.substr(position_, sign.size()) == sign) return take(Token::Kind::Sign, sign.size());
    }
    const Token here{Token::Kind::Sign, std::string(1, peek()), line_, column_};
    fail_syntax(here, fmt::format("'{}' means nothing here", here.text));
  }

  /// A dot belongs to a name when a name goes on after it: `i.outer`.
  size_t name_length() const {
    size_t length = 0;
    while (is_name_char(peek(length)) || (peek(length) == '.' && is_name_char(peek(length + 1)))) {
      ++length;
    }
    return length;
  }

  /// `2`, `2.0`, `1e-05`; in `0..n` the number is 0.
  Token number() {
    size_t length = 0;
    bool is_float = false;
    while (is_digit(peek(length)))
      ++length;
    if (peek(length) == '.' && is_digit(peek(length + 1))) {
      is_float = true;
      ++length;
      while (is_digit(peek(length)))
        ++length;
    }
    if (peek(length) == 'e') {
      const size_t sign = peek(length + 1) == '-' || peek(length + 1) == '+' ? 1 : 0;
      if (is_digit(peek(length + 1 + sign))) {
        is_float = true;
        length += 1 + sign;
        while (is_digit(peek(length)))
          ++length;
      }
    }
    return take(is_float ? Token::Kind::Float : Token::Kind::Integer, length);
  }

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

void fail_syntax(const Token& at, std::string_view what) {
  fail(ErrorKind::InvalidArgument, "SYNTAX", "line {}, column {}: {}", at.line, at.column, what);
}

}  // namespace kiln::ir

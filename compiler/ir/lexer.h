#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::ir {

/// A word, number or sign of the lowered text, and where it begins (both from 1).
struct Token {
  enum class Kind { Name, Integer, Float, Sign, End };
  Kind kind = Kind::End;
  std::string text;
  int line = 1;
  int column = 1;
};

/// Cuts the text into tokens, the last of kind End. Throws InvalidArgument SYNTAX at a character
/// that begins none.
std::vector<Token> tokenize(std::string_view text);

/// Throws InvalidArgument SYNTAX with the place.
[[noreturn]] void fail_syntax(const Token& at, std::string_view what);

}  // namespace kiln::ir

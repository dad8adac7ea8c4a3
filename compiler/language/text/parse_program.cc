// The lines of a program. A line ends where its grammar does, so that it needs no sign at its end.
//
//   program jacobi { parameter u  v, change = step(u)  update u = v  report change }
#include <algorithm>
#include <array>

#include "compiler/language/suggest.h"
#include "compiler/language/text/syntax.h"

namespace kiln::language::syntax {
namespace {

constexpr std::array<std::string_view, 8> kWords = {"input",  "data",   "parameter", "step",
                                                    "update", "output", "report",    "until"};

class ProgramParser {
 public:
  ProgramParser(const Source& source, const std::vector<Token>& tokens, size_t at,
                std::vector<Place>& starts)
      : source_(source), tokens_(tokens), at_(at), starts_(starts) {}

  ProgramText run() {
    ProgramText program;
    program.place = start_here();
    ++at_;
    program.name = expect_name("the name of the program").text;
    expect_sign("{", "before the lines of the program");
    while (!is_sign("}")) {
      program.lines.push_back(line());
      take_sign(";");
    }
    ++at_;
    return program;
  }

  size_t at() const { return at_; }

 private:
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool is_sign(std::string_view sign) const {
    return peek().kind == TokenKind::Sign && peek().text == sign;
  }
  bool take_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void expected(std::string_view what) const {
    const Token& token = peek();
    source_.refuse(token.place, "expected {}, but found {}", what,
                   token.kind == TokenKind::End ? "the end of the file" : token.text.substr(0, 64));
  }
  void expect_sign(std::string_view sign, std::string_view where) {
    if (!take_sign(sign)) expected(fmt::format("{} {}", sign, where));
  }
  ProgramLine::Named expect_name(std::string_view what) {
    if (peek().kind != TokenKind::Name) expected(what);
    const Token& token = tokens_[at_++];
    return {token.text, token.place};
  }

  Place start_here() {
    starts_.push_back(peek().place);
    return peek().place;
  }

  std::vector<ProgramLine::Named> names() {
    std::vector<ProgramLine::Named> found = {expect_name("the name of a value")};
    while (take_sign(","))
      found.push_back(expect_name("the name of a value"));
    return found;
  }

  /// A value may be called as a word is: a word has a name behind it.
  ProgramLine line() {
    ProgramLine line;
    line.place = start_here();
    const bool is_word = peek(1).kind == TokenKind::Name &&
                         std::find(kWords.begin(), kWords.end(), peek().text) != kWords.end();
    if (is_word) {
      line.word = tokens_[at_++].text;
    } else if (peek().kind == TokenKind::Name && peek(1).kind == TokenKind::Name) {
      refuse_word(peek());
    }
    if (peek().kind != TokenKind::Name) {
      expected("a line of the program, as in v = step(u), parameter u or update u = v");
    }
    line.names = names();
    if (line.word == "update") {
      expect_sign("=", "and what the parameter becomes");
      line.arguments = {expect_name("the name of a value")};
    } else if (line.word.empty()) {
      expect_sign("=", "and the kernel that makes these values");
      line.kernel = expect_name("the name of a kernel");
      expect_sign("(", "before what the kernel reads");
      if (!is_sign(")")) line.arguments = names();
      expect_sign(")", "after what the kernel reads");
    }
    return line;
  }

  [[noreturn]] void refuse_word(const Token& token) const {
    const std::string_view best = nearest(token.text, kWords);
    source_.refuse(token.place, "{} begins no line of a program; {}", token.text.substr(0, 64),
                   best.empty() ? fmt::format("known: {}", fmt::join(kWords, ", "))
                                : fmt::format("did you mean {}", best));
  }

  const Source& source_;
  const std::vector<Token>& tokens_;
  size_t at_;
  std::vector<Place>& starts_;
};

}  // namespace

ProgramText parse_program(const Source& source, const std::vector<Token>& tokens, size_t& at,
                          std::vector<Place>& starts) {
  ProgramParser parser(source, tokens, at, starts);
  ProgramText program = parser.run();
  at = parser.at();
  return program;
}

}  // namespace kiln::language::syntax

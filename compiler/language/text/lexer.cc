// Cuts a file into tokens by the longest sign that fits, and shows places in it: a line, a column
// and a caret. Names may have dots, as axes of schedules do.
//
//   C.i.outer < 2*n  ->  Name "C.i.outer", Sign "<", Integer "2", Sign "*", Name "n"
#include <algorithm>
#include <array>

#include "compiler/language/check/check.h"
#include "compiler/language/text/syntax.h"
#include "compiler/language/utf8.h"

namespace kiln::language::syntax {
namespace {

// Bytes; a file may be one line, and the message goes to a terminal.
constexpr size_t kLongestLineShown = 160;
constexpr int64_t kLongestName = 4'096;  // of an axis that many steps have made, with its stage

constexpr auto kSigns = std::to_array<std::string_view>({
    "->", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "//", "**", "(", ")", "[", "]", "{",
    "}",  ",",  ":",  "=",  "<",  ">",  "+",  "-",  "*",  "/",  "%",  "&", "|", "^", "!", "~",
});

/// One character for one, so that the caret stays where it points.
void make_printable(std::string& line) {
  for (size_t at = 0; at < line.size();) {
    const size_t length = utf8_length(std::string_view(line).substr(at));
    if (static_cast<unsigned char>(line[at]) < 0x20) line[at] = ' ';
    if (length == 0) line[at] = '?';
    at += std::max<size_t>(length, 1);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return begins_name(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(const Source& source, std::vector<Comment>* comments)
      : source_(source), text_(source.text()), comments_(comments) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      tokens.push_back(next());
    }
    tokens.push_back({TokenKind::End, "", text_.size()});
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        comment();
      } else if (std::string_view(" \t\r\n;").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void comment() {
    const Place start = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    if (comments_ == nullptr) return;
    const std::string_view line = text_.substr(start, at_ - start);
    comments_->push_back({line.substr(0, line.find_last_not_of(" \t\r") + 1), start});
  }

  Token next() {
    const Place start = at_;
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return number(start);
    if (begins_name(peek())) {
      // A dot belongs to a name where a letter follows: "C.i", but not "C." at the end of a
      // sentence.
      while (in_name(peek()) || (peek() == '.' && in_name(peek(1)))) {
        ++at_;
      }
      source_.limit(start, "a name", "bytes", static_cast<int64_t>(at_ - start), kLongestName);
      check_utf8(start, at_);
      return {TokenKind::Name, text_.substr(start, at_ - start), start};
    }
    for (const std::string_view sign : kSigns) {
      if (text_.substr(at_).starts_with(sign)) {
        at_ += sign.size();
        return {TokenKind::Sign, sign, start};
      }
    }
    const char c = peek();
    if (c < 0x20 || c == 0x7F) {
      source_.refuse(start, "unexpected control character {}", static_cast<int>(c));
    }
    if (c == '.' && start > 0 && text_[start - 1] == '.') {  // 0..n is the number 0. and a point
      source_.refuse(start,
                     "unexpected ..; there are no loops to write: an assignment to C[i] is made "
                     "for every i");
    }
    if (c == '?') source_.refuse(start, "there is no ?:; write if_then_else(condition, a, b)");
    source_.refuse(start, "unexpected character {}", std::string_view(&text_[start], 1));
  }

  void check_utf8(Place begin, Place end) const {
    while (begin < end) {
      const size_t length = utf8_length(text_.substr(begin, end - begin));
      if (length == 0) {
        source_.refuse(begin, "byte {:#x} begins no character of UTF-8; save the file as UTF-8",
                       static_cast<unsigned char>(text_[begin]));
      }
      begin += length;
    }
  }

  Token number(Place start) {
    bool is_float = false;
    const auto digits = [&] {
      while (is_digit(peek())) {
        ++at_;
      }
    };
    digits();
    if (peek() == '.') {
      is_float = true;
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign))) {
        is_float = true;
        at_ += 1 + sign;
        digits();
      }
    }
    // 1x is neither 1 nor x: a missing operator would otherwise be read as two statements.
    if (in_name(peek())) {
      source_.refuse(start, "{} is neither a number nor a name",
                     text_.substr(start, std::min<size_t>(at_ + 1 - start, 64)));
    }
    return {is_float ? TokenKind::Float : TokenKind::Integer, text_.substr(start, at_ - start),
            start};
  }

  const Source& source_;
  std::string_view text_;
  std::vector<Comment>* comments_;
  size_t at_ = 0;
};

}  // namespace

int Source::line_of(Place place) const {
  const auto end = text_.begin() + static_cast<ptrdiff_t>(std::min(place, text_.size()));
  return 1 + static_cast<int>(std::count(text_.begin(), end, '\n'));
}

void Source::limit(Place place, std::string_view what, std::string_view unit, int64_t value,
                   int64_t most) const {
  try {
    check_limit(what, unit, value, most);
  } catch (Error& error) {
    error.set_location({file_, line_of(place)});  // such a line is too long to show
    throw;
  }
}

void Source::locate(Error& error, Place place) const {
  place = std::min(place, text_.size());
  const size_t newline = place == 0 ? std::string_view::npos : text_.rfind('\n', place - 1);
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t end = std::min(text_.find('\n', place), text_.size());
  const size_t column = place - start;
  std::string line(text_.substr(start, end - start));
  if (line.size() > kLongestLineShown) line.resize(kLongestLineShown);
  make_printable(line);
  std::string note = fmt::format("line {}, column {}", line_of(place), column + 1);
  if (column < kLongestLineShown) {
    note += fmt::format("\n{}\n{}^", line, std::string(column, ' '));
  }
  error.add_note(note);
  error.set_location({file_, line_of(place)});
}

std::vector<Token> tokenize(const Source& source, std::vector<Comment>* comments) {
  return Lexer(source, comments).run();
}

}  // namespace kiln::language::syntax

// Lays out a file anew from its tokens and comments: where lines begin is what the parser noted,
// blanks and breaks follow from neighbouring tokens. The tree is not printed, so nothing that it
// does not keep can be lost, and the result is compared with the input token by token.
//
//   C[i]=A[i]+  B[i] # sum  ->  C[i] = A[i] + B[i]  # sum
#include <algorithm>

#include "compiler/language/check/check.h"
#include "compiler/language/text/syntax.h"
#include "compiler/language/text/text.h"

namespace kiln::language {
namespace syntax {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kContinuation = 4;

bool is(const Token& token, std::string_view sign) {
  return token.kind == TokenKind::Sign && token.text == sign;
}
bool is_any(const Token& token, std::initializer_list<std::string_view> signs) {
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return is(token, sign); });
}

/// Whether a sign after this token stands before an operand of its own: the minus of `-x`.
bool expects_operand(const Token& before) {
  return before.kind == TokenKind::Sign && !is_any(before, {")", "]", "}"});
}

/// A token of a line: how it is set off from the one before it, and whether a line that is too long
/// may be broken in front of it.
struct Piece {
  std::string_view text;
  bool blank_before = false;
  bool may_break = false;
  int nesting = 0;  // brackets that are open around it
};

struct Line {
  int depth = 0;
  std::vector<Piece> pieces;
  std::string_view comment;  // behind the pieces, or alone
  bool blank_before = false;
  bool continues = false;  // the statement of the line before it
};

/// Gathers tokens and comments into lines, in the order of the text.
class LineBuilder {
 public:
  LineBuilder(const Source& source, const Tree& tree) : source_(source), starts_(tree.starts) {}

  std::vector<Line> run() {
    std::vector<Comment> comments;
    const std::vector<Token> tokens = tokenize(source_, &comments);
    size_t next = 0;
    for (const Token& token : tokens) {
      const bool starts = starts_line(token);
      for (; next < comments.size() && comments[next].place < token.place; ++next) {
        add(comments[next], !starts);
      }
      if (token.kind != TokenKind::End) add(token, starts);
    }
    return std::move(lines_);
  }

 private:
  /// Line ends in the text between the last thing added and `place`.
  size_t newlines_before(Place place) const {
    const std::string_view gap = source_.text().substr(end_, place - end_);
    return static_cast<size_t>(std::count(gap.begin(), gap.end(), '\n'));
  }

  void begin_line(Place place, bool continues) {
    // Blank lines of the author stay, one at most, but for those at the edges of a block.
    const bool after_brace = lines_.empty() || (!lines_.back().pieces.empty() &&
                                                lines_.back().pieces.back().text == "{");
    lines_.push_back({.depth = depth_, .continues = continues});
    lines_.back().blank_before = !continues && !after_brace && newlines_before(place) > 1;
    is_open_ = true;
  }

  bool starts_line(const Token& token) const {
    return token.kind == TokenKind::End || is_any(before_, {"{", "}"}) || is(token, "}") ||
           std::binary_search(starts_.begin(), starts_.end(), token.place);
  }

  void add(const Comment& comment, bool in_statement) {
    const bool behind = is_open_ && newlines_before(comment.place) == 0;
    if (!behind) begin_line(comment.place, in_statement);
    lines_.back().comment = comment.text;
    is_open_ = false;
    end_ = comment.place + comment.text.size();
  }

  void add(const Token& token, bool starts) {
    const bool closes = is(token, "}");
    if (closes) --depth_;
    if (starts || !is_open_) begin_line(token.place, !starts);
    if (closes) lines_.back().blank_before = false;
    const bool is_next_block = starts && depth_ == 0 && is(before_, "}") &&
                               (token.text == "kernel" || token.text == "program");
    if (is_next_block && !after_comment()) lines_.back().blank_before = true;
    if (starts) nesting_ = 0;
    if (is_any(token, {")", "]"})) --nesting_;
    lines_.back().pieces.push_back({.text = token.text,
                                    .blank_before = has_blank(token),
                                    .may_break = may_break(token),
                                    .nesting = nesting_});
    if (is_any(token, {"(", "["})) ++nesting_;
    if (is(token, "{")) ++depth_;
    is_prefix_ = is_any(token, {"-", "!", "~"}) && expects_operand(before_);
    before_ = token;
    end_ = token.place + token.text.size();
  }

  bool after_comment() const {
    return lines_.size() > 1 && lines_[lines_.size() - 2].pieces.empty();
  }

  bool has_blank(const Token& token) const {
    if (is_prefix_ || is_any(before_, {"(", "["})) return false;
    if (is_any(token, {")", "]", ",", ":"})) return false;
    if (is_any(token, {"(", "["})) {
      return before_.kind == TokenKind::Sign && !is_any(before_, {")", "]"});
    }
    return nesting_ == 0 || !(is(token, "=") || is(before_, "="));
  }

  bool may_break(const Token& token) const {
    if (is(before_, ",")) return true;
    const bool is_infix = token.kind == TokenKind::Sign && !expects_operand(before_) &&
                          !is_any(token, {"(", ")", "[", "]", "{", "}", ",", ":", "="});
    return is_infix || (is(before_, "=") && nesting_ == 0);
  }

  const Source& source_;
  const std::vector<Place>& starts_;
  std::vector<Line> lines_;
  Token before_ = {TokenKind::End, "", 0};
  Place end_ = 0;  // of the last token or comment
  int depth_ = 0;
  int nesting_ = 0;
  bool is_open_ = false;    // more may be added to the last line
  bool is_prefix_ = false;  // the last token belongs to the operand behind it
};

std::string text_of(const std::vector<Piece>& pieces, size_t first, size_t end) {
  std::string text;
  for (size_t i = first; i < end; ++i) {
    if (i > first && pieces[i].blank_before) text += ' ';
    text += pieces[i].text;
  }
  return text;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0U) != 0x80U; }));
}

/// Widths of the beginnings of a line: the pieces from `first` to `end` take a difference of two.
std::vector<size_t> widths_of(const std::vector<Piece>& pieces) {
  std::vector<size_t> widths = {0};
  for (const Piece& piece : pieces) {
    widths.push_back(widths.back() + width_of(piece.text) + (piece.blank_before ? 1 : 0));
  }
  return widths;
}

/// Where a row that begins with the piece `first` ends. Breaks stand as far out in the brackets as
/// they can, and as far to the right.
size_t end_of_row(const std::vector<Piece>& pieces, const std::vector<size_t>& widths,
                  size_t indent, size_t first) {
  const size_t from = widths[first] + (pieces[first].blank_before ? 1 : 0);
  const auto fits = [&](size_t end) { return indent + widths[end] - from <= kWidth; };
  // What fits is not broken, however it was before.
  if (fits(pieces.size())) return pieces.size();
  size_t best = pieces.size();
  for (size_t i = first + 1; i < pieces.size(); ++i) {
    if (best < pieces.size() && !fits(i)) break;
    if (!pieces[i].may_break) continue;
    if (best == pieces.size() || pieces[i].nesting <= pieces[best].nesting) best = i;
  }
  return best;
}

/// The text of a line as rows that fit the width, as far as breaks allow.
std::vector<std::string> rows_of(const Line& line) {
  std::vector<std::string> rows;
  const std::vector<size_t> widths = widths_of(line.pieces);
  size_t indent = 2 * static_cast<size_t>(line.depth) + (line.continues ? kContinuation : 0);
  if (line.pieces.empty()) rows.emplace_back(indent, ' ');
  for (size_t first = 0; first < line.pieces.size();) {
    const size_t end = end_of_row(line.pieces, widths, indent, first);
    rows.push_back(std::string(indent, ' ') + text_of(line.pieces, first, end));
    first = end;
    if (rows.size() == 1 && !line.continues) indent += kContinuation;
  }
  return rows;
}

/// Comments behind statements of neighbouring lines begin in one column.
std::string text_of(const std::vector<Line>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines)
    rows.push_back(rows_of(line));
  const auto has_comment_behind = [&](size_t i) {
    return i < lines.size() && !lines[i].comment.empty() && !lines[i].pieces.empty();
  };
  std::string text;
  size_t column = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].blank_before) text += '\n';
    const bool begins = !has_comment_behind(i - 1) || lines[i].blank_before || i == 0;
    if (has_comment_behind(i) && begins) {
      column = 0;
      for (size_t j = i; has_comment_behind(j) && (j == i || !lines[j].blank_before); ++j) {
        column = std::max(column, width_of(rows[j].back()) + 2);
      }
    }
    for (size_t row = 0; row < rows[i].size(); ++row) {
      text += rows[i][row];
      const bool last = row + 1 == rows[i].size();
      if (last && has_comment_behind(i)) text.append(column - width_of(rows[i][row]), ' ');
      if (last) text += lines[i].comment;
      text += '\n';
    }
  }
  return text;
}

bool same_tokens(const Source& a, const Source& b) {
  const std::vector<Token> left = tokenize(a);
  const std::vector<Token> right = tokenize(b);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Token& x, const Token& y) { return x.text == y.text; });
}

}  // namespace
}  // namespace syntax

std::string format_text(std::string_view text, std::string_view file_name, const Limits& limits) {
  check_limit("the file", "bytes", static_cast<int64_t>(text.size()), limits.text_bytes);
  const syntax::Source source(text, file_name);
  const syntax::Tree tree = syntax::parse(source, limits.depth, limits.expressions);
  std::string result = syntax::text_of(syntax::LineBuilder(source, tree).run());
  KILN_CHECK(syntax::same_tokens(source, syntax::Source(result, file_name)));
  return result;
}

}  // namespace kiln::language

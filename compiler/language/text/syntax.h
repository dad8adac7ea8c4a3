#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/tables/operator.h"
#include "runtime/core/error.h"

// The text of kernel files as a tree, before names mean anything. Not for other folders.
namespace kiln::language::syntax {

/// A byte of the text.
using Place = size_t;

/// A text under its file name, for messages.
class Source {
 public:
  Source(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  int line_of(Place place) const;

  /// Throws ResourceExhausted LIMIT, with the line, when `value` is more than `most`.
  void limit(Place place, std::string_view what, std::string_view unit, int64_t value,
             int64_t most) const;

  /// Gives the error the place: its location, and a note with the line and a caret below.
  void locate(Error& error, Place place) const;

  template <typename... Args>
  [[noreturn]] void refuse(Place place, fmt::format_string<Args...> format, Args&&... args) const {
    Error error(ErrorKind::InvalidArgument, "SYNTAX",
                fmt::format(format, std::forward<Args>(args)...));
    locate(error, place);
    throw error;
  }

 private:
  std::string_view text_;
  std::string file_;
};

enum class TokenKind : uint8_t { Name, Integer, Float, Sign, End };

/// Names may have dots in them: "blockIdx.x", "S.update".
struct Token {
  TokenKind kind;
  std::string_view text;
  Place place;
};

/// `# ...` up to the end of its line, without blanks behind it.
struct Comment {
  std::string_view text;
  Place place;
};

/// Ends with a token of kind End. Throws SYNTAX on a character that begins nothing. Comments mean
/// nothing; they go to `comments` where that is given.
std::vector<Token> tokenize(const Source& source, std::vector<Comment>* comments = nullptr);

/// "line 3, column 7" is kept by `place`; children by position in Tree::nodes.
struct Node {
  enum class Kind : uint8_t {
    Integer,  // text
    Float,    // text
    Name,     // text: a size, an axis, a tensor without dimensions, true, false, nan, inf
    Index,    // text[children]
    Call,     // text(children)
    Reduce,   // text[ranges](sources, where=condition, init=(inits)), in the order of children
    Apply,    // op of children: what is written with signs
  };
  Kind kind;
  Place place;
  std::string_view text;
  Operator op = Operator::Add;
  std::vector<int> children;
  int depth = 1;
  // Reduce: how many of the children are what. The rest are the inits.
  size_t ranges = 0;
  size_t sources = 0;
  bool has_condition = false;
};

/// name: [state] TYPE[shape], of a parameter or a declaration
struct TypedName {
  std::string_view name;
  Place place = 0;
  bool is_output = false;
  bool is_state = false;
  std::string_view type;
  Place type_place = 0;
  std::vector<int> shape;  // nodes
};

/// name: TYPE, where a type is given
struct ReducerValue {
  std::string_view name;
  Place place = 0;
  std::string_view type;
  Place type_place = 0;
};

/// reducer name((values), (values)) = results identity identities
struct ReducerText {
  std::string_view name;
  Place place = 0;
  std::vector<ReducerValue> left;
  std::vector<ReducerValue> right;
  std::vector<int> results;     // nodes
  std::vector<int> identities;  // nodes
};

/// name[indices], name[indices] = values; one value where that is a reduction of several
struct Assignment {
  std::vector<std::string_view> names;
  Place place = 0;
  std::vector<int> indices;  // nodes; the same for all names
  std::vector<int> values;   // nodes
};

/// names = scan((init, ...), (update, ...), (state, ...), axis=axis, dimension=1, reverse)
struct ScanCall {
  std::vector<std::string_view> names;
  Place place = 0;
  std::vector<std::string_view> lists[3];
  std::string_view axis;
  uint32_t dimension = 0;
  bool is_reverse = false;
};

/// name = scatter_add[ranges](base, index, ..., update)
struct ScatterCall {
  std::string_view name;
  std::string_view function;
  Place place = 0;
  std::vector<int> ranges;     // nodes
  std::vector<int> arguments;  // nodes
};

/// One statement of a kernel: the members that its kind names are set.
struct Statement {
  enum class Kind : uint8_t {
    Declare,
    DeclareSize,
    Reducer,
    Assign,
    ScanBlock,
    ScanCall,
    ScatterCall
  };
  Kind kind;
  Place place = 0;
  TypedName declared;  // Declare, DeclareSize (is_state: `var`, which may be negative)
  ReducerText reducer;
  Assignment assignment;
  ScanCall scan;
  ScatterCall scatter;
  std::string_view time;              // ScanBlock
  bool is_reverse = false;            // ScanBlock
  std::vector<Statement> statements;  // ScanBlock
};

/// name(arguments), an argument being a name, a number, or word=number.
struct StepCall {
  struct Argument {
    std::string_view word;  // of word=number
    bool is_number = false;
    std::string_view text;
    int64_t number = 0;
    Place place = 0;
  };
  std::string_view name;
  Place place = 0;
  std::vector<Argument> arguments;
};

/// schedule TARGET { steps }
struct ScheduleBlock {
  std::string_view target;
  Place place = 0;
  Place end = 0;  // behind its closing brace
  std::vector<StepCall> steps;
};

/// kernel NAME(parameters) { statements, schedule blocks }
struct KernelText {
  std::string_view name;
  Place place = 0;
  Place closing = 0;  // of its closing brace
  std::vector<TypedName> parameters;
  std::vector<Statement> statements;
  std::vector<ScheduleBlock> schedules;
};

/// One line of a program:
///
///   parameter u, v     v, change = step(u)     update u = v     until done
struct ProgramLine {
  struct Named {
    std::string_view text;
    Place place = 0;
  };
  std::string_view word;  // what it begins with; empty: a kernel is applied
  Place place = 0;
  std::vector<Named> names;      // listed, or left of the equals sign
  Named kernel;                  // that is applied
  std::vector<Named> arguments;  // of a kernel; the one value of an update
};

/// program NAME { lines }
struct ProgramText {
  std::string_view name;
  Place place = 0;
  std::vector<ProgramLine> lines;
};

struct Tree {
  std::vector<Node> nodes;
  std::vector<KernelText> kernels;
  std::vector<ProgramText> programs;
  std::vector<ScheduleBlock> schedules;  // of a file without kernels
  std::vector<Place> starts;  // where a kernel, a statement, a block or a step begins, in order
};

/// A program, from the word `program` at `tokens[at]` to its closing brace, behind which `at`
/// stands then. Its lines are added to `starts`. Throws SYNTAX.
ProgramText parse_program(const Source& source, const std::vector<Token>& tokens, size_t& at,
                          std::vector<Place>& starts);

/// A file of kernels and programs, or of schedule blocks alone. Throws SYNTAX; ResourceExhausted
/// LIMIT for nesting deeper than `depth` or more than `nodes` nodes.
Tree parse(const Source& source, int depth, int nodes);

}  // namespace kiln::language::syntax

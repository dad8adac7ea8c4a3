// Gives every node of one print a name that parses back: i, i_1, i_2 in the order met. A thread
// axis keeps its plain name in loops side by side, since these are one hardware index.
#include "compiler/ir/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "compiler/ir/stmt.h"
#include "runtime/core/dtype.h"

namespace kiln::ir {
namespace {

/// What the text of a node begins with; empty where that is no word of its own.
template <typename T>
constexpr std::string_view word_of() {
  if constexpr (requires { T::kWord; }) {
    return T::kWord;
  } else {
    return {};
  }
}

constexpr auto kWordsOfNodes = std::to_array<std::string_view>({
#define EXPR(T) word_of<T>(),
#define STMT(T) word_of<T>(),
#include "compiler/ir/nodes.def"
});

/// Beside these, types and operators are words of the text, and all that begins with reduce_.
constexpr auto kWords = std::to_array<std::string_view>({
    "at",    "bind",   "bytes",     "else",   "false",     "fn",          "in",          "inf",
    "input", "likely", "nan",       "output", "parallel",  "per_thread",  "scope",       "strides",
    "true",  "unroll", "vectorize", "where",  "workspace", "reassociate", "nontemporal", "swizzle",
});

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

bool is_name_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

bool is_reserved(std::string_view word) {
  return is_one_of(kWords, word) || is_one_of(kWordsOfNodes, word) || find_dtype(word) ||
         language::find_operator(word) || word.starts_with("reduce_");
}

std::string mangled(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool dot = c == '.' && !result.empty() && result.back() != '.';
    result.push_back(dot || is_name_char(c) ? c : '_');
  }
  while (!result.empty() && result.back() == '.')
    result.pop_back();
  if (result.empty()) result = "v";
  if (std::isdigit(static_cast<unsigned char>(result[0])) != 0) result.insert(0, 1, '_');
  if (is_reserved(result)) result.push_back('_');
  return result;
}

const std::string& Names::name(const Node* node, std::string_view wanted) {
  const auto found = names_.find(node);
  if (found != names_.end()) return found->second;

  const std::string base = mangled(wanted);
  std::string candidate = base;
  for (int& suffix = next_suffix_[base]; !used_.insert(candidate).second;) {
    candidate = base + "_" + std::to_string(++suffix);
  }
  return names_.emplace(node, std::move(candidate)).first->second;
}

const std::string& Names::enter_thread(const VarRef& var) {
  const std::string base = mangled(var->name);
  const bool reusable = threads_.count(base) > 0 && threads_inside_.count(base) == 0;
  if (reusable && names_.count(var.get()) == 0) names_.emplace(var.get(), base);
  const std::string& name = of(var);
  threads_.insert(name);
  threads_inside_.insert(name);
  return name;
}

void Names::leave_thread(const VarRef& var) { threads_inside_.erase(of(var)); }

}  // namespace kiln::ir

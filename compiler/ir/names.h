#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr.h"

namespace kiln::ir {

/// Whether `c` may stand in a name: letters, digits, `_`, bytes of UTF-8. A `.` may stand between.
bool is_name_char(char c);

/// Whether a word means something in the lowered text, so that nothing can be named by it.
bool is_reserved(std::string_view word);

/// `name` as the lowered text can hold it: other characters become `_`, a reserved word gets one.
std::string mangled(std::string_view name);

/// Hands out the names of one print: each variable and buffer gets its own, `i`, `i_1`, `i_2`.
class Names {
 public:
  const std::string& of(const VarRef& var) { return name(var.get(), var->name); }
  const std::string& of(const BufferRef& buffer) { return name(buffer.get(), buffer->name); }

  /// Gives a thread index the plain name of its hardware index, unless that is visible here.
  /// Loops of one thread axis that stand side by side are the same index and share the name.
  const std::string& enter_thread(const VarRef& var);
  void leave_thread(const VarRef& var);

 private:
  const std::string& name(const Node* node, std::string_view wanted);

  std::unordered_map<const Node*, std::string> names_;
  std::unordered_map<std::string, int> next_suffix_;
  std::unordered_set<std::string> used_;
  std::unordered_set<std::string> threads_;         // names that thread loops have
  std::unordered_set<std::string> threads_inside_;  // those of the loops around the current place
};

}  // namespace kiln::ir

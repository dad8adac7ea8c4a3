#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

/// What variables and buffers of one function are called in CUDA C: the user's names where they are
/// identifiers of C, each one once.
class CudaNames {
 public:
  CudaNames();
  const std::string& operator[](const ir::VarRef& var) { return of(var.get(), var->name); }
  const std::string& operator[](const ir::BufferRef& buffer) {
    return of(buffer.get(), buffer->name);
  }
  /// One that the code declares itself, under a name of ours.
  void declare(const ir::VarRef& var, std::string name) { names_[var.get()] = std::move(name); }

 private:
  const std::string& of(const ir::Node* node, std::string_view wanted);

  std::unordered_map<const ir::Node*, std::string> names_;
  std::unordered_set<std::string> taken_;
};

}  // namespace kiln::codegen

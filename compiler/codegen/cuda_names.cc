// Finds an identifier for each variable and buffer of a function: the user's name with what C does
// not allow made underscores, then a number until it is free: `x.outer` -> x_outer, and another
// x_outer -> x_outer_1. Words of the language, CUDA's own names and our prefix kiln_ are taken from
// the start.
#include "compiler/codegen/cuda_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::codegen {
namespace {

// Words of C++ and names that CUDA declares without a header.
constexpr std::string_view kReserved[] = {
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "workspace",
    "fault",
    "bitand",
    "bitor",
    "compl",
    "and_eq",
    "or_eq",
    "xor_eq",
    "not_eq",
    "constexpr",
    "concept",
    "requires",
    "wchar_t",
    "char8_t",
    "char16_t",
    "char32_t",
    "static_assert",
    "thread_local",
    "isinf",
    "const_cast",
    "dynamic_cast",
    "static_cast",
    "reinterpret_cast",
    "consteval",
    "constinit",
    // Macros that NVRTC defines, and our own type.
    "NULL",
    "assert",
    "KilnFault",
};

// What begins so may be a function of ours, or a macro of NVRTC.
constexpr std::string_view kReservedPrefixes[] = {"kiln_", "CUDA", "CU_", "cuda"};

bool has_reserved_prefix(std::string_view name) {
  return std::ranges::any_of(kReservedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string identifier(std::string_view wanted) {
  std::string result;
  for (const char c : wanted) {
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (result.empty() && is_digit) result += 'v';
    // Two underscores in a row, or one at the front, belong to the compiler.
    const char last = result.empty() ? '_' : result.back();
    if (is_digit || is_letter) {
      result += c;
    } else if (last != '_') {
      result += '_';
    }
  }
  return result.empty() ? "v" : result;
}

}  // namespace

CudaNames::CudaNames() {
  for (const std::string_view word : kReserved)
    taken_.emplace(word);
}

const std::string& CudaNames::of(const ir::Node* node, std::string_view wanted) {
  const auto found = names_.find(node);
  if (found != names_.end()) return found->second;

  const std::string base = identifier(wanted);
  std::string name = base;
  for (int i = 1; has_reserved_prefix(name) || !taken_.insert(name).second; ++i) {
    // "v_" takes a name out of a prefix that is not the user's.
    name = fmt::format("{}{}{}{}", has_reserved_prefix(base) ? "v_" : "", base,
                       base.ends_with('_') ? "" : "_", i);
  }
  return names_[node] = name;
}

}  // namespace kiln::codegen

// Operators of the library by name: kernel texts that the build puts into the binary, parsed at the
// first use of any.
#include <map>
#include <string>

#include <fmt/format.h>
#include <kiln/definition.h>

#include "client/cpp/fail.h"
#include "client/cpp/operator_texts.h"
#include "compiler/language/suggest.h"

namespace kiln {
inline namespace client {
namespace {

using Operators = std::map<std::string, Definition, std::less<>>;

Operators parsed_operators() {
  Operators operators;
  for (const detail::OperatorText& file : detail::operator_texts()) {
    for (const Definition& definition : parse(file.text, file.file))
      operators.emplace(definition.name(), definition);
  }
  return operators;
}

}  // namespace

Definition load_operator(std::string_view name) {
  static const Operators operators = parsed_operators();
  const auto found = operators.find(name);
  if (found != operators.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [other, definition] : operators)
    known.push_back(other);
  detail::fail(ErrorKind::InvalidArgument, "OPERATOR", "unknown operator {}{}", name,
               language::suggestion(name, known));
}

}  // namespace client
}  // namespace kiln

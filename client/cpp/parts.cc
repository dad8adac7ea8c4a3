// Definitions taken apart, for who measures their stages one by one (compiler/language/parts.h).
#include "client/cpp/parts.h"

#include <utility>

#include "client/cpp/definition_state.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

std::vector<std::int64_t> in_order(const Definition& definition,
                                   const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::int64_t> values;
  for (const std::string& name : definition.sizes())
    values.push_back(sizes.at(name));
  return values;
}

}  // namespace

std::vector<DefinitionPart> parts_of(const Definition& definition,
                                     const std::map<std::string, std::int64_t>& sizes) {
  std::vector<DefinitionPart> parts;
  for (border::WirePart& part :
       border::parts_of(definition.state()->kernel, in_order(definition, sizes))) {
    auto state = std::make_shared<DefinitionState>();
    state->kernel = std::move(part.kernel);
    parts.push_back({.name = std::move(part.name),
                     .definition = Definition(std::move(state)),
                     .operations = part.operations,
                     .bytes_read = part.bytes_read,
                     .bytes_written = part.bytes_written});
  }
  return parts;
}

std::vector<std::vector<std::int64_t>> shapes_of(const Definition& definition,
                                                 const std::map<std::string, std::int64_t>& sizes) {
  return border::shapes_of(definition.state()->kernel, in_order(definition, sizes));
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kiln/definition.h>

namespace kiln {
inline namespace client {
namespace detail {

/// A stage of a definition, or a scan with its cells, as a definition of its own: its parameters
/// are what it reads, then what it makes. And what it has to do at least, each element once.
struct DefinitionPart {
  std::string name;
  Definition definition;
  double operations = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};

/// `sizes` has all sizes of the definition by name; the parts have the same.
std::vector<DefinitionPart> parts_of(const Definition& definition,
                                     const std::map<std::string, std::int64_t>& sizes);
/// The extents of each parameter.
std::vector<std::vector<std::int64_t>> shapes_of(const Definition& definition,
                                                 const std::map<std::string, std::int64_t>& sizes);

}  // namespace detail
}  // namespace client
}  // namespace kiln

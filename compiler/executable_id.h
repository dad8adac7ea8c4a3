#pragma once

#include <string>

namespace kiln {

/// What tells this executable from every other build of it, as hex digits: the id that the linker
/// gave it, or a hash of its file. Never empty.
std::string executable_id();

}  // namespace kiln

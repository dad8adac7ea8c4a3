#pragma once

#include <string>
#include <string_view>

namespace kiln::server {

/// An artifact as caches keep it outside of memory: a header with lengths and a checksum, the
/// canonical form of its request, its bytes.
std::string pack_entry(std::string_view form, std::string_view artifact);

/// What is wrong with an entry; empty when nothing is. Of others only what this says of is asked.
std::string damage_of(std::string_view entry);

/// Whether a whole entry is of this form: keys are hashes, and may be alike.
bool is_of_form(std::string_view entry, std::string_view form);

/// Leaves the artifact of a whole entry, in place: it may be many megabytes.
void keep_artifact(std::string& entry);

}  // namespace kiln::server

#pragma once

#include <string>
#include <vector>

#include "kiln/v1/service.pb.h"
#include "server/workers/launcher.h"

namespace kiln::server {

/// What holds of a process after confine().
struct Sandbox {
  std::vector<std::string> holds;  // "no network", ...
  std::vector<std::string> lacks;  // what this host does not allow, with why
};

/// Takes from this process, which has one thread yet, what a worker of this role never needs:
/// network, other programs, other processes, and all but reading the system's files. What a kernel
/// or a bug in the compiler does then ends at its own memory. Nothing can be taken back.
///
/// The driver of a GPU opens devices and files of its own, so its worker keeps files.
Sandbox confine(Role role);

/// The same of the process that runs tileiras for a compiler: it starts programs, which inherit all
/// of this, and writes files in that folder alone.
Sandbox confine_assembler(const std::string& folder);

/// What Describe says of it.
v1::Component component_of(const Sandbox& sandbox, const std::string& worker);

}  // namespace kiln::server

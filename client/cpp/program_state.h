#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kiln/kernel.h>

#include "client/cpp/link.h"
#include "kiln/v1/program.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A program as it is sent.
struct ProgramState {
  v1::Program wire;
  std::vector<std::string> outputs = {};  // what they are called
  std::vector<std::string> reports = {};
  std::map<std::uint32_t, Argument> own = {};  // of parameters, where a run is given no others
};

/// The number of what a run is given by this name. Throws InvalidArgument PROGRAM_FEED.
std::uint32_t given_id(const v1::Program& program, const std::string& name);
/// Makes the program known to the service, which is nothing where it is; its id there.
std::string define(Link& link, const v1::Program& program, const std::string& target);

}  // namespace detail
}  // namespace client
}  // namespace kiln

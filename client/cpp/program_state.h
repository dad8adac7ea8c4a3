#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kiln/kernel.h>

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

}  // namespace detail
}  // namespace client
}  // namespace kiln

#pragma once

#include "kiln/v1/program.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A program as it is sent.
struct ProgramState {
  v1::Program wire;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln

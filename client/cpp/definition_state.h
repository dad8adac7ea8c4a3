#pragma once

#include <memory>
#include <string>

#include <kiln/definition.h>

#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {
namespace detail {

struct DefinitionState {
  border::WireKernel kernel;
  v1::Schedule schedule;  // the one that is used
};

}  // namespace detail
}  // namespace client
}  // namespace kiln

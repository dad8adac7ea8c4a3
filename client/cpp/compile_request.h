#pragma once

#include <kiln/connection.h>

#include "client/cpp/definition_state.h"
#include "kiln/v1/service.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

v1::CompileOptions to_wire(const BuildOptions& options);

/// Compile and Lower requests begin alike.
template <typename Request>
Request request_of(const Definition& definition, const BuildOptions& options) {
  const DefinitionState& state = *definition.state();
  Request request;
  *request.mutable_definition() = state.kernel.definition;
  *request.mutable_source_map() = state.kernel.names;
  if (!options.name.empty()) request.mutable_source_map()->set_kernel(options.name);
  *request.mutable_schedule() = state.schedule;
  request.mutable_target()->set_name(options.target == "cpu" ? "llvm" : options.target);
  request.mutable_target()->set_arch(options.arch);
  *request.mutable_options() = to_wire(options);
  return request;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

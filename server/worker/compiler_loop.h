#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/artifact.h"
#include "server/ipc/fd.h"

namespace kiln::server {

/// What a compiler worker can do. Each function throws what its caller is to be told.
struct CompilerWorker {
  std::string build_id;
  std::string host_arch;
  /// Notes the steps of a candidate, and whether the artifact is for now.
  std::function<Artifact(const internal::Compile&, internal::Compiled&)> compile;
  std::function<std::string(const internal::Text&)> text;
  std::function<std::vector<internal::StageSketches>(const v1::CompileRequest&)> sketches;
  std::function<void(const internal::Predict&, internal::Predicted&)> predictions;
  std::function<std::vector<v1::Component>()> components;
  /// The front end is gone: what is being compiled is not wanted any more.
  std::function<void()> abandoned = [] {};
};

/// Compiles what comes from `socket` until the front end hangs up. Returns an exit code.
int compiler_loop(const CompilerWorker& worker, Fd socket, Fd page);

}  // namespace kiln::server

#pragma once

#include <functional>
#include <memory>

#include "compiler/codegen/tileiras.h"
#include "kiln/v1/service.pb.h"
#include "server/workers/launcher.h"

namespace kiln::server {

/// Starts workers as threads of this process (--isolation=none): the same loops, the same messages.
/// What a process gives is missing: a kernel that does not end holds its device for ever, and one
/// that crashes ends the daemon.
class ThreadLauncher : public Launcher {
 public:
  std::unique_ptr<Child> start(const WorkerSpec& spec, Fd socket, Fd page) override;
};

/// Runs the worker of a role until its front end hangs up. It says of itself what it is confined
/// to; `abandoned` as in DeviceWorker; a compiler has code of tiles made by the assembler.
int run_role(const WorkerSpec& spec, Fd socket, Fd page, const v1::Component& sandbox,
             std::function<void()> abandoned,
             std::shared_ptr<const codegen::TileAssembler> assembler);

}  // namespace kiln::server

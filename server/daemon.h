#pragma once

#include <memory>

#include "server/config.h"
#include "server/workers/launcher.h"

namespace kiln::server {

/// A whole daemon: listens, prints `listening on ADDRESS`, serves until SIGTERM or SIGINT (or until
/// it is idle), drains, and returns the exit code. Call it from the main thread, before there are
/// others.
int run_daemon(const Config& config, std::unique_ptr<Launcher> launcher);

/// Blocks the signals that run_daemon() waits for, in this thread and those it starts.
void block_signals();

}  // namespace kiln::server

#pragma once

namespace kiln::server {

/// The descriptors a worker process finds open when it starts.
constexpr int kWorkerSocketFd = 3;
constexpr int kWorkerPageFd = 4;

/// What front end and workers check of each other in Hello.
constexpr unsigned kWorkerProtocol = 8;

}  // namespace kiln::server

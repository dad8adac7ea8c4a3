#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "server/ipc/status_page.h"

namespace kiln::server {

/// The thread of a worker that shows the front end it is alive, and notices when the front end is
/// not.
class Heartbeat {
 public:
  /// `abandoned` runs once, in the thread, when the other end of `socket` is gone.
  Heartbeat(SharedStatus& status, int socket, std::function<void()> abandoned);
  ~Heartbeat();

 private:
  void loop();

  SharedStatus& status_;
  const int socket_;
  const std::function<void()> abandoned_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;  // last: it uses the above
};

}  // namespace kiln::server

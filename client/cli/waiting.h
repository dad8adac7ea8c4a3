#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

#include <kiln/connection.h>

namespace kiln::cli {

/// While it lives, a line of the terminal that says what is waited for and for how long, once that
/// is more than a second; nothing where there is no terminal.
class Waiting {
 public:
  /// On stderr.
  explicit Waiting(const std::string& what);
  Waiting(std::ostream& out, bool terminal, std::string what,
          std::chrono::milliseconds after = std::chrono::seconds(1));
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void tell(std::chrono::milliseconds after);

  std::ostream& out_;
  const std::string what_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread teller_;
};

/// Compiles for a device of the service; a terminal shows how long that takes.
Kernel build_here(const Connection& connection, const Definition& definition,
                  const BuildOptions& options);

}  // namespace kiln::cli

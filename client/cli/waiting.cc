// A thread that writes over one line of the terminal, and takes the line back at the end, so that
// what is printed next stands where it would have stood.
#include "client/cli/waiting.h"

#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "client/cli/report.h"

namespace kiln::cli {

Waiting::Waiting(const std::string& what) : Waiting(std::cerr, is_terminal(STDERR_FILENO), what) {}

Waiting::Waiting(std::ostream& out, bool terminal, std::string what,
                 std::chrono::milliseconds after)
    : out_(out), what_(std::move(what)) {
  if (terminal) teller_ = std::thread([this, after] { tell(after); });
}

Waiting::~Waiting() {
  if (!teller_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  teller_.join();
}

void Waiting::tell(std::chrono::milliseconds after) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kEvery(500);
  const Clock::time_point begin = Clock::now();
  bool told = false;
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, told ? kEvery : after, [this] { return is_over_; })) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    out_ << fmt::format("\r\x1b[K{} {:.0f} s", what_, seconds) << std::flush;
    told = true;
  }
  if (told) out_ << "\r\x1b[K" << std::flush;
}

Kernel build_here(const Connection& connection, const Definition& definition,
                  const BuildOptions& options) {
  const Waiting waiting("compiling " + definition.name());
  return connection.build(definition, options, SourceLocation::none());
}

}  // namespace kiln::cli

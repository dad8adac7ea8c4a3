// A crash or a hang in the middle of thousands of cases says which case it was: the signal handler
// and a watching thread print what each thread has entered here.
#include "tests/support/case_under_way.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <unistd.h>

#include "runtime/core/error.h"

namespace kiln::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// Seen by the signal handler and the watching thread.
struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<const std::string*> what = nullptr;
  std::atomic<Clock::rep> until = 0;
};
// No memory is taken and no lock held where the signal handler looks.
std::array<Slot, 64> slots;

void write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void print_all(std::string_view why) {
  write(why);
  for (const Slot& slot : slots) {
    const std::string* what = slot.what;
    if (what == nullptr) continue;
    write("\n-- under way:\n");
    write(*what);
  }
  write("\n");
}

void on_signal(int number) {
  print_all("the process crashed");
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void watch() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const Clock::rep now = Clock::now().time_since_epoch().count();
    for (const Slot& slot : slots) {
      const std::string* what = slot.what;
      if (what == nullptr || now < slot.until) continue;
      print_all("a case takes too long: " + *what);
      std::_Exit(1);
    }
  }
}

void start_watching() {
  static const bool started = [] {
    // Those that have a handler, such as of guarded memory, explain themselves.
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      struct sigaction now = {};
      ::sigaction(number, nullptr, &now);
      if (now.sa_handler == SIG_DFL) std::signal(number, on_signal);
    }
    std::thread(watch).detach();
    return true;
  }();
  KILN_CHECK(started);
}

}  // namespace

CaseUnderWay::CaseUnderWay(std::string what, double most_seconds)
    : what_(std::move(what)), slot_(0) {
  start_watching();
  while (slots[slot_].taken.exchange(true)) {
    slot_ = (slot_ + 1) % slots.size();
  }
  slots[slot_].until = (Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(most_seconds)))
                           .time_since_epoch()
                           .count();
  slots[slot_].what = &what_;
}

CaseUnderWay::~CaseUnderWay() {
  slots[slot_].what = nullptr;
  slots[slot_].taken = false;
}

}  // namespace kiln::testing

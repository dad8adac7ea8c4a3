#include "client/cli/waiting.h"

#include <sstream>

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// What a terminal was sent, with a way to wait for it.
class Screen : public std::stringbuf {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_changed_; });
  }

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(mutex_);
    is_changed_ = true;
    changed_.notify_all();
    return std::stringbuf::xsputn(text, size);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_changed_ = false;
};

TEST(Waiting, SaysWhatIsWaitedForAndTakesItBack) {
  Screen screen;
  std::ostream out(&screen);
  {
    const Waiting waiting(out, true, "compiling f", milliseconds(1));
    screen.wait();
  }
  EXPECT_TRUE(screen.str().starts_with("\r\x1b[Kcompiling f 0 s")) << screen.str();
  EXPECT_TRUE(screen.str().ends_with("\r\x1b[K"));
}

TEST(Waiting, SaysNothingOfWhatIsQuickNorWithoutATerminal) {
  std::ostringstream out;
  { const Waiting quick(out, true, "compiling f", hours(1)); }
  { const Waiting log(out, false, "compiling f", milliseconds(0)); }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace kiln::cli

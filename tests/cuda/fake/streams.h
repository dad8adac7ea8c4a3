#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

/// Streams, events and graphs of the fake driver. As lazy as a driver may be: what a stream is
/// given is done when somebody waits for it, and memory is read and written at that time. Who
/// forgets to wait finds old data.
namespace kiln::fake {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidHandle = 400;
constexpr int kCaptureInvalidated = 901;

using Work = std::function<int()>;  // its result, as a function of the driver has one

struct Stream {
  std::deque<Work> work;
  bool is_recording = false;
  std::vector<Work> recorded;  // what became of it while it was recording
};

struct Event {
  Stream* stream = nullptr;  // where it was recorded last; it is passed once `pending` is 0
  int pending = 0;           // records that the stream has not come to
  double milliseconds = 0;   // of the device's clock, which work moves
};

/// Not for several threads at once; the driver locks.
class Streams {
 public:
  /// The result of a work that failed before, which every call gets from then on.
  int sticky() const { return sticky_; }
  void break_context(int result) { sticky_ = result; }

  Stream* create();
  int destroy(Stream* stream);
  /// Gives `stream` work, or lets its recording have it.
  int add(Stream* stream, Work work);
  int run_all(Stream* stream);
  void come_to_rest();

  int record(Event& event, Stream* stream);
  int wait_for(Event& event);

  int begin_recording(Stream* stream);
  int end_recording(Stream* stream, std::vector<Work>& recorded);

 private:
  int run_first(Stream& stream);

  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  int sticky_ = kSuccess;
  double clock_ = 0;
};

}  // namespace kiln::fake

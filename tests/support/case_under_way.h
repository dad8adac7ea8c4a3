#pragma once

#include <string>

namespace kiln::testing {

/// What a thread is trying, while this lives: printed when the process crashes, and when the thread
/// is at it for so long that it must hang; then the process ends.
class CaseUnderWay {
 public:
  explicit CaseUnderWay(std::string what, double most_seconds = 300);
  ~CaseUnderWay();
  CaseUnderWay(const CaseUnderWay&) = delete;
  CaseUnderWay& operator=(const CaseUnderWay&) = delete;

 private:
  const std::string what_;
  size_t slot_;
};

}  // namespace kiln::testing

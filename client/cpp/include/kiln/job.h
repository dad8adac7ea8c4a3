#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/kernel.h>

namespace kiln {
inline namespace client {

namespace detail {
class Link;
}  // namespace detail

enum class JobPhase : int { Queued = 1, Compiling, Running, Done, Failed, Cancelled };

/// "queued", ...
std::string_view name_of(JobPhase phase);

struct JobState {
  std::string job;
  JobPhase phase = JobPhase::Queued;
  std::string kernel;
  double seconds = 0;     // since it was submitted
  std::string message;    // of a failed job
  unsigned attempts = 0;  // how often it was begun
};

struct JobOutput {
  std::string name;  // of the parameter
  unsigned parameter = 0;
  Array value;
};

struct JobResult {
  std::vector<JobOutput> outputs;
  Timings timings;
};

/// Work that the service does while no client waits.
class Job {
 public:
  const std::string& id() const { return id_; }
  /// Calls `on_change` with the state now and with each change; returns the last one.
  JobState watch(const std::function<void(const JobState&)>& on_change = {}) const;
  /// The outputs of a job that is done; throws what a failed one failed with.
  JobResult result() const;
  JobState cancel() const;

  Job(std::shared_ptr<detail::Link> link, std::string id)
      : link_(std::move(link)), id_(std::move(id)) {}

 private:
  std::shared_ptr<detail::Link> link_;
  std::string id_;
};

}  // namespace client
}  // namespace kiln

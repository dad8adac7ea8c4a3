// What an engine knows of itself, in the words of metrics.def.
//
//   Describe's counter memory_hits  ->  kiln_cache_hits_total{level="memory"}
#include "server/metrics/samples.h"

#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include <sys/resource.h>
#include <unistd.h>

#include "server/engine/engine.h"
#include "server/version.h"

namespace kiln::server {

namespace {

/// A counter of Describe, and what it is called here.
struct Known {
  const char* counter;
  Metric metric;
  std::vector<std::string> labels;
};

const std::vector<Known>& known() {
  static const std::vector<Known> table = {
      {"compiles", Metric::CacheMisses, {}},
      {"memory_hits", Metric::CacheHits, {"memory"}},
      {"disk_hits", Metric::CacheHits, {"disk"}},
      {"shared_hits", Metric::CacheHits, {"shared"}},
      {"disk_corrupt", Metric::CacheCorrupt, {}},
      {"memory_bytes", Metric::CacheBytes, {"memory"}},
      {"disk_bytes", Metric::CacheBytes, {"disk"}},
      {"runs", Metric::Runs, {"done"}},
      {"failed_runs", Metric::Runs, {"failed"}},
      {"retried_runs", Metric::RetriedRuns, {}},
      {"worker_restarts", Metric::WorkerRestarts, {"device"}},
      {"compiler_restarts", Metric::WorkerRestarts, {"compiler"}},
      {"uploads", Metric::Uploads, {}},
      {"uploaded_bytes", Metric::UploadedBytes, {}},
      {"found_uploads", Metric::FoundUploads, {}},
      {"resumed_uploads", Metric::ResumedUploads, {}},
      {"downloads", Metric::Downloads, {}},
      {"downloaded_bytes", Metric::DownloadedBytes, {}},
      {"rejected", Metric::Rejected, {}},
      {"searches", Metric::TuningSearches, {}},
      {"tuning_failures", Metric::TuningTrials, {"failed"}},
      {"tuned_compiles", Metric::TunedCompiles, {}},
      {"tuning_records", Metric::TuningRecords, {}},
      {"specialisations", Metric::Specialisations, {}},
      {"specialised_runs", Metric::SpecialisedRuns, {}},
      {"dropped_variants", Metric::DroppedVariants, {}},
      {"tensors", Metric::Tensors, {}},
      {"tensor_bytes", Metric::TensorBytes, {}},
      {"sessions", Metric::Sessions, {}},
  };
  return table;
}

std::string phase_name(v1::JobPhase phase) {
  std::string name = v1::JobPhase_Name(phase).substr(std::string_view("JOB_PHASE_").size());
  for (char& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

/// Every phase, also without jobs: a line that comes and goes cannot be summed.
void add_jobs(const JobService& jobs, std::vector<Sample>& samples) {
  std::map<v1::JobPhase, double> phases;
  for (int phase = v1::JOB_PHASE_QUEUED; phase <= v1::JobPhase_MAX; ++phase)
    phases[static_cast<v1::JobPhase>(phase)] = 0;
  for (const v1::JobState& job : jobs.list_all())
    ++phases[job.phase()];
  for (const auto& [phase, count] : phases)
    samples.push_back({Metric::Jobs, {phase_name(phase)}, count});
}

double resident_memory() {
  double total = 0;
  double resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;  // pages
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<Sample> samples_of(const Engine& engine) {
  std::vector<Sample> samples;
  const v1::DescribeResponse now = engine.describe();
  samples.push_back({Metric::BuildInfo, {now.version()}, 1});
  const auto& counters = now.counters();
  for (const Known& each : known()) {
    samples.push_back({each.metric, each.labels, static_cast<double>(counters.at(each.counter))});
  }
  samples.push_back(
      {Metric::TuningTrials,
       {"done"},
       static_cast<double>(counters.at("tuning_trials") - counters.at("tuning_failures"))});
  for (const v1::Device& device : now.devices()) {
    samples.push_back({Metric::DeviceUp, {device.name()}, device.state() == "ready" ? 1.0 : 0.0});
  }
  for (const Engine::Queue& queue : engine.queues())
    samples.push_back({Metric::QueueLength, {queue.name}, static_cast<double>(queue.length)});
  add_jobs(engine.jobs(), samples);
  return samples;
}

std::vector<Sample> process_samples() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  std::error_code ignored;
  const auto fds = std::distance(std::filesystem::directory_iterator("/proc/self/fd", ignored),
                                 std::filesystem::directory_iterator());
  static const auto start =
      static_cast<double>(std::chrono::duration_cast<std::chrono::seconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count());
  return {{Metric::ProcessCpu, {}, seconds(usage.ru_utime) + seconds(usage.ru_stime)},
          {Metric::ProcessMemory, {}, resident_memory()},
          {Metric::ProcessFds, {}, static_cast<double>(fds)},
          {Metric::ProcessStart, {}, start}};
}

}  // namespace kiln::server

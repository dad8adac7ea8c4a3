#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "server/cache/disk_cache.h"
#include "server/cache/redis_cache.h"
#include "server/engine/canary.h"
#include "server/engine/compile_service.h"
#include "server/engine/request_memo.h"
#include "server/engine/run_service.h"
#include "server/engine/tensor_copies.h"
#include "server/engine/warm_up.h"
#include "server/jobs/job_service.h"
#include "server/metrics/recent_errors.h"
#include "server/programs/program_service.h"
#include "server/tensors/idle_transfers.h"
#include "server/tuning/host_speeds.h"
#include "server/tuning/tune_service.h"
#include "server/workers/supervisor.h"

namespace kiln::server {

struct EngineOptions {
  std::string cache_folder;
  std::string shared_cache;  // redis://...; empty: none
  RedisCache::Times shared_times;
  int threads = 0;
  int compilers = 1;
  int cpu_workers = 4;
  int64_t tensor_bytes = int64_t{4} << 30;
  ArenaPool::Options arenas;  // but for their limit, which is the line above
  int64_t memory_cache_bytes = int64_t{256} << 20;
  int64_t disk_cache_bytes = int64_t{2} << 30;
  int64_t compile_memory_bytes = int64_t{4} << 30;  // of one compiler
  size_t kernels = 4096;
  size_t queue = 256;
  Quotas quotas;
  std::string job_folder;  // empty: cache_folder/jobs
  JobTable::Options jobs;
  TuneService::Options tuning;
  Specialiser::Options specialisation;
  WorkerTimes times;
  Clock::duration canary_period = std::chrono::seconds(10);  // 0: there is none
  Clock::duration session_grace = std::chrono::seconds(2);
  Clock::duration warm_memory = std::chrono::seconds(10);  // is kept, after the last client left
  Clock::duration unowned_tensor_life = std::chrono::minutes(10);
  Clock::duration idle_upload = std::chrono::seconds(60);  // in which nothing comes
  Clock::duration tick = std::chrono::milliseconds(100);
};

template <typename T>
using Then = std::function<void(Outcome<T>)>;

/// All of the service but its wire: compiles, runs, keeps tensors and jobs. Asynchronous, so that
/// the threads that answer calls never wait. Any thread may call it.
class Engine {
 public:
  Engine(const EngineOptions& options, std::unique_ptr<Launcher> launcher);
  ~Engine() { stop(); }

  /// Waits until the workers have answered, or `limit`. False: the cpu worker has not.
  bool wait_until_ready(Clock::duration limit);
  /// Why it should be sent no calls now; empty when nothing is wrong.
  std::string why_not_ready() const;
  /// Why it should be ended and started again; empty when nothing is wrong.
  std::string why_not_live() const;
  /// Compiles these for callers to come; it is not ready before.
  void warm_up(std::vector<v1::CompileRequest> kernels) { warm_up_.begin(std::move(kernels)); }
  bool compiler_answers() const { return compilers_.is_up(); }
  struct Queue {
    std::string name;
    size_t length = 0;  // what waits or runs
  };
  std::vector<Queue> queues() const;

  // Each throws, or tells its outcome once.
  void compile(const v1::CompileRequest& request, std::shared_ptr<Call> call, CompileDone done);
  void lower(const v1::LowerRequest& request, std::shared_ptr<Call> call, Then<std::string> done);
  void inspect(const v1::InspectRequest& request, std::shared_ptr<Call> call,
               Then<v1::InspectResponse> done);
  void run(const v1::RunRequest& request, std::shared_ptr<Call> call, RunDone done);
  /// A ticket for tunes().leave(). Throws; what happens later is told the watcher.
  /// What the automatic schedules of a kernel are predicted to take.
  void predict(const v1::PredictRequest& request, std::shared_ptr<Call> call,
               Then<v1::PredictResponse> done);
  uint64_t tune(const v1::TuneRequest& request, const Caller& caller, TuneWatcher watcher);
  /// Tells the id of a job that compiles (when it has to) and runs. Throws.
  void submit(const v1::SubmitRequest& request, const Caller& caller, Then<std::string> done);

  /// Memory for a tensor that a client will fill. Throws InvalidArgument, ResourceExhausted,
  /// NO_DEVICE.
  Tensor prepare_tensor(const v1::TensorHeader& header, const Caller& caller);
  /// The same without memory.
  Tensor check_header(const v1::TensorHeader& header, const Caller& caller) const;
  /// Tells `done` once the contents of `tensor` lie where the front end reads them.
  void bring_home(const Tensor& tensor, FetchDone done);
  /// The contents of `tensor`, which are here, begin their way to its device.
  void stage(const Tensor& tensor);
  /// Tells the id of the tensor that has the contents then. Throws.
  void copy(const v1::CopyRequest& request, const Caller& caller, Then<std::string> done);
  v1::DescribeResponse describe() const;
  /// Throws NotFound KERNEL.
  std::shared_ptr<const KernelEntry> get_kernel(const std::string& id) { return kernels_.get(id); }
  /// Null where it is not known here, or no more.
  std::shared_ptr<const KernelEntry> find_kernel(const std::string& id) {
    return kernels_.find(id);
  }

  TensorStore& tensors() { return tensors_; }
  Sessions& sessions() { return sessions_; }
  ArenaPool& arenas() { return *arenas_; }
  IdleTransfers& uploads() { return uploads_; }
  JobService& jobs() { return jobs_; }
  const JobService& jobs() const { return jobs_; }
  TuneService& tunes() { return tune_service_; }
  ProgramService& programs() { return programs_; }
  RecordStore& records() { return records_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  RecentErrors& errors() { return errors_; }
  const RecentErrors& errors() const { return errors_; }
  /// Process ids of the device workers, for tests.
  int cpu_pid() const { return cpu().pid(); }
  int pid_of(const std::string& device) const { return devices_.find(device)->pid(); }
  std::vector<int> compiler_pids() const { return compilers_.pids(); }

  /// Ends the workers, and every call with Unavailable DRAINING. Writes what the disk cache lacks.
  void stop();

 private:
  DeviceQueue& cpu() const { return devices_.of(TargetKind::Llvm); }
  CompileSetting setting() const;
  /// compile(), for those that do it for their own callers.
  CompileCall compile_call();
  /// The levels behind memory, the nearest first.
  std::vector<CacheLevel*> levels();
  void ask_compiler(internal::ToWorker message, const std::string& kernel, const std::string& key,
                    std::shared_ptr<Call> call, Then<internal::FromWorker> done);
  void ask_text(internal::ToWorker message, const std::string& kernel, const std::string& key,
                std::shared_ptr<Call> call, Then<std::string> done);
  /// The kernel that a request of the same bytes got, while it is still known.
  std::optional<CompileResult> find_again(const std::string& request);
  /// Compiles under the schedule of a tuning record where there is one.
  void compile_tuned(CheckedRequest checked, std::shared_ptr<Call> call, CompileDone done);
  /// What records for the request would be about, the one that counts most first; none when it can
  /// have none here.
  std::vector<TuningKey> tuning_keys(const CheckedRequest& checked) const;
  /// The request under the schedule of its record; nothing when there is none.
  std::optional<CheckedRequest> with_record(const CheckedRequest& checked) const;
  void tick(Clock::time_point now);
  void add_counts(v1::DescribeResponse& response) const;
  void add_components(v1::DescribeResponse& response) const;

  /// What host_speeds_ are of: "znver4, 2 threads".
  std::string host() const;

  const std::string boot_id_;
  const int threads_;  // of kernels on CPUs
  const SharedQuotas quotas_;
  Counters counters_;
  RecentErrors errors_;
  const std::unique_ptr<Launcher> launcher_;
  Supervisor supervisor_;
  Quarantine quarantine_;
  DeviceTime device_time_;
  const std::shared_ptr<ArenaPool> arenas_;
  TensorStore tensors_;
  Sessions sessions_;
  IdleTransfers uploads_;
  KernelTable kernels_;
  RequestMemo requests_;  // that got a kernel while there were no tuning records
  ArtifactCache memory_;
  DiskCache disk_;
  const std::unique_ptr<RedisCache> shared_;  // null: there is none
  CompilerPool compilers_;
  Devices devices_;
  Canary canary_;
  CompileService compile_service_;
  Specialiser specialiser_;
  RunService run_service_;
  TensorCopies copies_;
  RecordStore records_;
  HostSpeeds host_speeds_;
  TuneService tune_service_;
  ProgramService programs_;
  JobService jobs_;
  WarmUp warm_up_;
  const Clock::duration warm_memory_;
  std::atomic<Clock::time_point> ticked_ = Clock::now();
  bool stopped_ = false;
};

}  // namespace kiln::server

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/array.h>
#include <kiln/definition.h>
#include <kiln/job.h>
#include <kiln/kernel.h>
#include <kiln/predict.h>
#include <kiln/program.h>
#include <kiln/tune.h>

namespace kiln {
inline namespace client {

struct ConnectOptions {
  /// A bearer token, for a service that asks for one.
  std::string token = {};
  /// A PEM file with the authorities to trust; with it the connection uses TLS.
  std::string ca = {};
  /// PEM files with a certificate (chain) and its key, for a service that asks clients for one.
  std::string cert = {};
  std::string key = {};
  /// The name that its certificate is for, where it is not that of the address.
  std::string server_name = {};
};

struct BuildOptions {
  /// Replaces the name of the definition.
  std::string name = {};
  /// "llvm" (or "cpu"), "cuda", or "interpreter": the loops as they are written, with every index
  /// checked, on the CPU and a thousand times slower.
  std::string target = "llvm";
  /// Only for compile: "sm_90", or a CPU's name. Empty: that of the device.
  std::string arch = {};
  /// Stages without a step are scheduled automatically; else they are plain loops.
  bool automatic = true;
  /// No reassociation, ever.
  bool strict = false;
  /// Float scans and reductions may be reassociated, and sums of 8-bit floats have as few bits as
  /// tensor cores keep (docs/gpu.md).
  bool fast = false;
  /// Every variant of the kernel orders a reduction alike.
  bool reproducible = true;
  /// The first element to become NaN stops the call, with its name. Needs the interpreter.
  bool check_nan = false;
};

struct LowerOptions {
  /// A pass of the compiler; empty: the loops as they are built.
  std::string after = {};
  /// The loops that will run, with untouched stages scheduled automatically.
  bool automatic = false;
};

struct UploadOptions {
  std::string device = "cpu:0";
  /// Tells a service elsewhere the digest (SHA-256) of the contents first, which are sent only
  /// where none of the caller's arrays there has them.
  bool by_digest = false;
};

struct Device {
  std::string name;    // cpu:0
  std::string target;  // llvm
  std::string arch;
  std::string state;  // ready, starting, failed
  std::int64_t memory_bytes = 0;
  std::string description;
};

/// A part of the installation that can be missing, and a sentence about it.
struct Component {
  std::string name;
  bool ok = false;
  std::string message;
};

/// A tensor that the service keeps between calls.
struct TensorState {
  std::string id;
  DType type = DType::Float32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
  std::string device;   // where its client put it
  std::string session;  // with whose end it is freed; empty: freed when it is not used for a while
  double unused_seconds = 0;  // since the last call that took it
};

/// What a tenant keeps on the service.
struct Holdings {
  std::vector<TensorState> tensors;  // the largest first
  std::int64_t count = 0;            // of all of them
  std::int64_t bytes = 0;            // of all of them
  std::int64_t limit_bytes = 0;      // that it may have; 0: as many as there is memory for
};

struct Description {
  std::string version;
  std::string boot_id;
  unsigned pid = 0;
  std::vector<Device> devices;
  std::map<std::string, std::int64_t> counters;
  std::vector<Component> components;
};

/// Something that the service did for a call of a trace, and where: "kernel matmul" in a process
/// "kiln-worker", there on "cpu:0". Nanoseconds of this host's std::chrono::steady_clock.
struct Span {
  std::string name;
  std::string process;
  unsigned pid = 0;
  std::string track;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A daemon to compile and run with. A handle on one channel and one session; thread-safe.
class Connection {
 public:
  /// Compiles for a device that the service has.
  Kernel build(const Definition& definition, const BuildOptions& options = {},
               SourceLocation where = SourceLocation::current()) const;
  Kernel build(const Schedule& schedule, const std::vector<Tensor>& arguments,
               const BuildOptions& options = {},
               SourceLocation where = SourceLocation::current()) const;
  /// Compiles, for `options.arch` also when the service has no such device.
  Kernel compile(const Definition& definition, const BuildOptions& options = {},
                 SourceLocation where = SourceLocation::current()) const;
  Kernel compile(const Schedule& schedule, const std::vector<Tensor>& arguments,
                 const BuildOptions& options = {},
                 SourceLocation where = SourceLocation::current()) const;
  /// The kernels that export_library saved, here or in Python, compiled for the devices at hand.
  /// Throws InvalidArgument MODULE_FILE.
  Kernels load_module(const std::string& path) const;
  /// The loops as text.
  std::string lower(const Definition& definition, const LowerOptions& lower = {},
                    const BuildOptions& options = {},
                    SourceLocation where = SourceLocation::current()) const;
  std::string lower(const Schedule& schedule, const std::vector<Tensor>& arguments,
                    const LowerOptions& lower = {}, const BuildOptions& options = {},
                    SourceLocation where = SourceLocation::current()) const;

  /// The gradients of `output` with respect to each of `inputs`, as tensors that read the same
  /// ones: they can be scheduled, built and differentiated like any other. `head` is what some
  /// result changes by with each element of the output, of its shape or with more dimensions in
  /// front, which the gradients get as well; without one they are Jacobians, of the output's
  /// dimensions and then the input's.
  std::vector<Tensor> gradient(const Tensor& output, const std::vector<Tensor>& inputs,
                               const std::optional<Tensor>& head = {},
                               SourceLocation where = SourceLocation::current()) const;
  /// The definition that takes the inputs of this one and a head for each output, and gives a
  /// gradient for each input; names choose among outputs and inputs, none stand for all.
  Definition differentiate(const Definition& definition,
                           const std::vector<std::string>& outputs = {},
                           const std::vector<std::string>& inputs = {}) const;

  /// What the automatic schedules of a kernel are predicted to take, and why. Runs
  /// nothing.
  Predictions predict(const Definition& definition, const PredictOptions& options = {},
                      const BuildOptions& build = {},
                      SourceLocation where = SourceLocation::current()) const;

  /// Measures automatic schedules of the stages without steps on the device of the service, each
  /// with the same result to the last bit. The fastest is kept there, and serves every later build
  /// of the same definition, whoever asks. Goes on where an earlier search ended.
  TuneResult tune(const Definition& definition, const TuneOptions& options = {},
                  const BuildOptions& build = {},
                  SourceLocation where = SourceLocation::current()) const;

  /// Takes steps of a program in one call. `given` has a value for each of its inputs, data sets
  /// and parameters. A parameter is an array of the service, which steps change, or one of this
  /// process, which has the parameter's new values when the call ends, even by an error: those of
  /// the last whole step.
  ProgramResult run(const Program& program, const std::map<std::string, Argument>& given,
                    const ProgramOptions& options = {},
                    SourceLocation where = SourceLocation::current()) const;

  /// The kernels and the memory of a step for arrays of these shapes. Compiles, and runs nothing.
  ProgramPlan plan(const Program& program,
                   const std::map<std::string, std::vector<std::int64_t>>& shapes,
                   const ProgramOptions& options = {},
                   SourceLocation where = SourceLocation::current()) const;

  /// Large arrays go on where a connection broke off.
  RemoteArray upload(const Array& array, const std::string& device = "cpu:0",
                     SourceLocation where = SourceLocation::current()) const;
  RemoteArray upload(const Array& array, const UploadOptions& options,
                     SourceLocation where = SourceLocation::current()) const;
  Array download(const RemoteArray& array) const { return array.download(); }

  /// Compiles and runs on the service while this process may end. The arguments are the inputs.
  Job submit(const Definition& definition, const std::vector<Argument>& inputs,
             const BuildOptions& options = {}, const CallOptions& call = {},
             SourceLocation where = SourceLocation::current()) const;
  /// A job by its id. Nothing is asked of the service.
  Job job(const std::string& id) const;
  /// The job whose id begins so. Throws NotFound JOB, InvalidArgument JOB when several do.
  Job find_job(const std::string& prefix) const;
  std::vector<JobState> jobs() const;

  Description describe() const;
  /// What the caller's tenant keeps on the service, the `limit` largest tensors of it; 0: 10000.
  Holdings tensors(std::uint32_t limit = 0) const;
  /// Frees tensors by their ids, those of other programs too; how many of them there were.
  std::uint32_t free_tensors(const std::vector<std::string>& ids) const;
  /// What the service did lately for calls of a W3C trace, by its id: those of a process to which
  /// TRACEPARENT was given.
  std::vector<Span> spans(const std::string& trace) const;
  /// As it was given, or that of the private daemon.
  const std::string& address() const;
  /// Ends the session: arrays on the service are freed. Calls after it throw.
  void close() const;

  explicit Connection(std::shared_ptr<detail::Link> link) : link_(std::move(link)) {}

 private:
  std::shared_ptr<detail::Link> link_;
};

/// Connects to `HOST:PORT` or `unix:PATH`. Without an address: $KILN_ADDRESS, else a private daemon
/// of this user, which is started when it does not run.
Connection connect(const std::string& address = {}, const ConnectOptions& options = {});

/// The version of this library.
std::string version();

}  // namespace client
}  // namespace kiln

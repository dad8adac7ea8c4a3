#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kiln/array.h>
#include <kiln/definition.h>

namespace kiln {
inline namespace client {

namespace detail {
class KernelState;
struct CancelState;
}  // namespace detail

/// Where the time of a call went, in seconds.
struct Timings {
  double queue = 0;
  double compile = 0;
  double upload = 0;
  double kernel = 0;
  double download = 0;
  std::string cache;  // where the kernel came from: compiled, memory, disk or shared
  std::string trace;  // the id of the W3C trace that the call was part of; empty: none
};

struct CallOptions {
  /// Sizes that no argument's shape gives, by name.
  std::map<std::string, std::int64_t> sizes = {};
  /// How long the call may take; 0: as long as it needs.
  std::chrono::milliseconds deadline{0};
  /// "cuda:1"; empty: where the arguments lie, or the first device of the kernel's target.
  std::string device = {};
};

using Argument = std::variant<Array, RemoteArray>;

/// The outputs of a call, in the order of the parameters.
class Outputs : public std::vector<Array> {
 public:
  using std::vector<Array>::vector;
  /// The only output. Throws InvalidArgument when there are others.
  operator Array() const;
};

/// A call under way. One that is dropped waits for the call to end.
class Future {
 public:
  /// Waits; throws what the call threw. Once only.
  Outputs get() { return result_.get(); }
  void wait() const { result_.wait(); }
  template <typename Rep, typename Period>
  std::future_status wait_for(const std::chrono::duration<Rep, Period>& time) const {
    return result_.wait_for(time);
  }
  bool valid() const { return result_.valid(); }
  /// Ends the call on the service too; get() then throws Cancelled, unless it had ended before.
  void cancel() const;

  /// `keeps` is what the call needs until it has ended.
  Future(std::future<Outputs> result, std::shared_ptr<detail::CancelState> cancel,
         std::shared_ptr<void> keeps)
      : result_(std::move(result)), cancel_(std::move(cancel)), keeps_(std::move(keeps)) {}
  ~Future() { end(); }
  Future(Future&&) = default;
  Future& operator=(Future&& other) noexcept {
    end();
    result_ = std::move(other.result_);
    cancel_ = std::move(other.cancel_);
    keeps_ = std::move(other.keeps_);
    return *this;
  }

 private:
  void end() const noexcept {
    if (result_.valid()) result_.wait();
  }

  std::future<Outputs> result_;
  std::shared_ptr<detail::CancelState> cancel_;
  std::shared_ptr<void> keeps_;
};

namespace detail {

/// An argument, and the line of the user's program that passes it.
struct ArgumentHere {
  template <typename T>
  requires(std::constructible_from<Argument, const T&>)
      ArgumentHere(const T& value, SourceLocation where = SourceLocation::current())
      : value(value), where(where) {}
  Argument value;
  SourceLocation where;
};

}  // namespace detail

/// A compiled kernel. A handle; calls from several threads are fine. When the service has forgotten
/// it, it is compiled again unseen.
class Kernel {
 public:
  /// One call. With an argument a parameter, the outputs are written into those given; with the
  /// inputs alone, they are new arrays. Both ways they are returned.
  template <typename... A>
  requires(std::constructible_from<Argument, const A&>&&...) Outputs operator()(
      const detail::ArgumentHere& first, const A&... arguments) const {
    return call({first.value, Argument(arguments)...}, {}, first.where);
  }
  Outputs operator()(SourceLocation where = SourceLocation::current()) const {
    return call({}, {}, where);
  }
  Outputs call(const std::vector<Argument>& arguments, const CallOptions& options = {},
               SourceLocation where = SourceLocation::current()) const;
  /// The outputs stay on the device; the arguments are the inputs alone.
  std::vector<RemoteArray> call_remote(const std::vector<Argument>& inputs,
                                       const CallOptions& options = {},
                                       SourceLocation where = SourceLocation::current()) const;

  /// As operator(), without waiting.
  template <typename... A>
  requires(std::constructible_from<Argument, const A&>&&...) Future
      submit(const detail::ArgumentHere& first, const A&... arguments)
  const { return submit_call({first.value, Argument(arguments)...}, {}, first.where); }
  Future submit_call(std::vector<Argument> arguments, CallOptions options = {},
                     SourceLocation where = SourceLocation::current()) const;

  /// Seconds a run on the device, `measurements` times the mean of `repeat` runs.
  std::vector<double> measure(const std::vector<Argument>& arguments, unsigned repeat = 10,
                              unsigned measurements = 3, const CallOptions& options = {},
                              SourceLocation where = SourceLocation::current()) const;

  /// Of the last call that ended.
  Timings timings() const;
  /// "lowered", "llvm", "asm", "cuda", "ptx" or "tile".
  std::string source(const std::string& what,
                     SourceLocation where = SourceLocation::current()) const;
  /// JSON: guards, proved, launches, schedule, notes, kernels. Of a GPU's kernel for these sizes,
  /// all of them or none: predicted, what a call takes by its code; where all sizes are constants
  /// always.
  std::string report(const std::map<std::string, std::int64_t>& sizes = {}) const;
  std::string name() const;
  std::vector<Parameter> parameters() const;
  /// Where it came from when it was built, and how long that took.
  Timings build_timings() const;

  /// Saves what was built for Connection::load_module, here or in Python: a definition and its
  /// schedule, never machine code. Throws InvalidArgument MODULE_FILE.
  void export_library(const std::string& path) const;

  /// Writes the compiled kernel to a file that runs without a service (kiln/runtime.h): machine
  /// code for the target and arch that it was built for. Throws Unsupported EXPORT for the
  /// interpreter, InvalidArgument ARTIFACT_FILE where it cannot be written.
  void export_artifact(const std::string& path,
                       SourceLocation where = SourceLocation::current()) const;

  explicit Kernel(std::shared_ptr<detail::KernelState> state) : state_(std::move(state)) {}
  const std::shared_ptr<detail::KernelState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::KernelState> state_;
};

/// Several kernels: those of a module.
class Kernels : public std::vector<Kernel> {
 public:
  using std::vector<Kernel>::vector;
  /// The only one. Throws InvalidArgument when there are others.
  operator Kernel() const;
  /// The one of that name. Throws NotFound.
  Kernel get_function(std::string_view name) const;
  /// All of them in one file.
  void export_library(const std::string& path) const;
};

}  // namespace client
}  // namespace kiln

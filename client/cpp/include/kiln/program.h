#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/kernel.h>
#include <kiln/types.h>

namespace kiln {
inline namespace client {

namespace detail {
struct ProgramState;
}  // namespace detail

/// How a value comes into a program.
enum class ProgramRole {
  Input,     // given with each run, the same in all of its steps
  Data,      // the next rows of a data set
  Parameter  // changed by updates
};

/// What a run of a program is given.
struct ProgramValue {
  std::string name;
  ProgramRole role;
  DType type;
};

/// Where a run stands: after each epoch, or now and then.
struct ProgramProgress {
  std::uint64_t steps = 0;                   // done so far
  std::uint64_t epochs = 0;                  // of them, whole passes over the data sets
  std::map<std::string, double> means = {};  // of each report, over the steps since the last event
  double seconds = 0;                        // that these steps took
};

struct ProgramOptions {
  /// "llvm" (or "cpu"), "cuda", or "interpreter".
  std::string target = "llvm";
  /// "cuda:1"; empty: where its arrays lie, or the first device of the target.
  std::string device = {};
  /// How many steps; 0: one pass over the data sets, else one. With `until`, at most so many.
  std::uint64_t steps = 0;
  /// Passes over the data sets, in place of `steps`.
  std::uint64_t epochs = 0;
  /// Rows of each data set that a step sees.
  std::uint64_t batch = 0;
  /// What the number of the step begins with.
  std::uint64_t first_step = 0;
  /// A report that is NaN stops the run before its step is committed.
  bool stop_on_nan = false;
  /// After which the run ends by itself, at a whole step; 0: never.
  std::chrono::milliseconds timeout{0};
  std::function<void(const ProgramProgress&)> on_progress = {};
};

/// What a run of a program gave: outputs as its last step has them, and a number of each report for
/// every step.
struct ProgramResult {
  std::map<std::string, Array> outputs = {};
  std::map<std::string, std::vector<double>> reports = {};
  std::uint64_t steps = 0;
  Timings timings = {};
};

/// What a step of a program runs for some shapes, and where its values lie.
struct ProgramPlan {
  struct Step {  // one kernel
    std::string name;
    std::vector<std::string> nodes;  // that it computes
    std::int64_t read_bytes = 0;
    std::int64_t written_bytes = 0;
    bool once = false;  // for all steps, as it reads parameters alone that stay
  };
  struct Value {
    std::string name;
    DType type;
    std::vector<std::int64_t> shape;
    std::int64_t offset = -1;  // in the arena; -1: outside of it
    std::string becomes;       // the parameter whose place it takes at the end of a step
    std::string reuses;        // a value that lay in this memory before
    std::size_t first = 0;     // the kernels that need its memory, from one to another
    std::size_t last = 0;

    std::int64_t bytes() const;
  };
  std::string program;
  std::vector<Step> kernels;  // in the order in which they run
  std::vector<Value> values;
  std::int64_t arena_bytes = 0;     // beside what is given
  std::int64_t live_bytes = 0;      // the most that is alive at a time
  std::int64_t separate_bytes = 0;  // without reuse

  /// What the kernels of a step read and write.
  std::int64_t moved_bytes() const;
};

/// A step that a service repeats, as a kernel file has it or a ProgramBuilder makes it: kernels
/// wired by name, parameters that change, what is kept of every step. Connection::run takes steps.
/// Immutable.
class Program {
 public:
  const std::string& name() const;
  /// What a run is given.
  std::vector<ProgramValue> values() const;
  std::vector<std::string> outputs() const;
  std::vector<std::string> reports() const;
  /// Whether its steps go on until a value is not 0.
  bool has_end() const;

  explicit Program(std::shared_ptr<const detail::ProgramState> state) : state_(std::move(state)) {}
  const std::shared_ptr<const detail::ProgramState>& state() const { return state_; }

 private:
  std::shared_ptr<const detail::ProgramState> state_;
};

/// The programs of a kernel file. `file_name` is what errors call it.
std::vector<Program> parse_programs(std::string_view text,
                                    const std::string& file_name = "the kernel text");
std::vector<Program> load_programs(const std::string& path);

}  // namespace client
}  // namespace kiln

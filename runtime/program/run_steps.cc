// The loop over the steps of a program: the kernels of a step as one sequence, without a look at
// anything but them, then its numbers, then the exchange of each parameter with what it becomes.
// That exchange is the commit: until then a step has written nothing that anybody else sees, so a
// kernel that fails, a NaN and a cancelled run leave the parameters of the step before.
//
//   W -> place 0, W' -> place 1;  after a step W -> place 1, W' -> place 0;  at the end copied home
#include "runtime/program/run_steps.h"

#include <chrono>
#include <cmath>
#include <cstring>

#include "runtime/core/error.h"
#include "runtime/core/small_float.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
T as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double number_of(DType type, const std::byte* bytes) {
  switch (type) {
    case DType::Bool:
    case DType::UInt8: return as<uint8_t>(bytes);
    case DType::Int8: return as<int8_t>(bytes);
    case DType::Int16: return as<int16_t>(bytes);
    case DType::UInt16: return as<uint16_t>(bytes);
    case DType::Int32: return as<int32_t>(bytes);
    case DType::UInt32: return as<uint32_t>(bytes);
    case DType::Int64: return static_cast<double>(as<int64_t>(bytes));
    case DType::UInt64: return static_cast<double>(as<uint64_t>(bytes));
    case DType::Float32: return as<float>(bytes);
    case DType::Float64: return as<double>(bytes);
    case DType::Float16:
    case DType::BFloat16: return from_small_float(type, as<uint16_t>(bytes));
    case DType::Float8E4M3FN:
    case DType::Float8E5M2: return from_small_float(type, as<uint8_t>(bytes));
  }
  return 0;
}

/// Where each slot lies, from step to step.
class Places {
 public:
  Places(Device& device, const Step& step)
      : device_(device), step_(step), is_staged_(!traits_of(device.target()).is_host) {
    for (size_t slot = 0; slot < step.slots.size(); ++slot) {
      const StepSlot& each = step.slots[slot];
      now_.push_back(each.data);
      if (each.is_data_set && is_staged_) stage(slot);
    }
    for (const StepKernel& kernel : step.kernels)
      pointers_.emplace_back(kernel.slots.size());
    follow();
  }

  void* of(uint32_t slot) const { return now_[slot]; }
  std::span<const std::vector<void*>> of_kernels() const { return pointers_; }
  /// To be done before the kernels of this step.
  std::span<const DeviceCopy> copies() const { return copies_; }

  /// The data sets at the rows of this step.
  void move_to(uint64_t batch) {
    size_t staged = 0;
    for (size_t slot = 0; slot < now_.size(); ++slot) {
      const StepSlot& each = step_.slots[slot];
      if (!each.is_data_set) continue;
      uint8_t* const rows =
          static_cast<uint8_t*>(each.data) + static_cast<int64_t>(batch) * each.bytes;
      if (is_staged_) {
        copies_[staged++].from = rows;
      } else {
        now_[slot] = rows;
      }
    }
    follow();
  }

  void exchange() {
    for (const auto& [parameter, value] : step_.exchanges)
      std::swap(now_[parameter], now_[value]);
    exchanged_ = !exchanged_;
    follow();
  }

  /// Parameters lie where they lay at first.
  void go_home() {
    if (!exchanged_) return;
    for (const auto& [parameter, value] : step_.exchanges)
      device_.copy_within(step_.slots[parameter].data, now_[parameter],
                          step_.slots[parameter].bytes);
    exchange();
  }

 private:
  /// A GPU gets the rows of each step in the same place: a step that is started with the values of
  /// one before it is a graph already, and kernels move 16 bytes at once, where rows need not
  /// begin.
  void stage(size_t slot) {
    const int64_t bytes = step_.slots[slot].bytes;
    now_[slot] = staged_.emplace_back(device_.allocate(bytes))->data();
    copies_.push_back({now_[slot], step_.slots[slot].data, bytes});
  }

  void follow() {
    for (size_t k = 0; k < pointers_.size(); ++k) {
      for (size_t i = 0; i < pointers_[k].size(); ++i)
        pointers_[k][i] = now_[step_.kernels[k].slots[i]];
    }
  }

  Device& device_;
  const Step& step_;
  const bool is_staged_;
  std::vector<void*> now_;                             // by slot
  std::vector<std::vector<void*>> pointers_;           // by kernel
  std::vector<std::unique_ptr<DeviceBuffer>> staged_;  // one a data set
  std::vector<DeviceCopy> copies_;                     // likewise
  bool exchanged_ = false;
};

std::vector<SequenceKernel> kernels_of(const Step& step) {
  std::vector<SequenceKernel> kernels;
  for (const StepKernel& kernel : step.kernels)
    kernels.push_back({kernel.kernel.get(), &kernel.bound, kernel.names});
  return kernels;
}

class Steps {
 public:
  Steps(Device& device, const Step& step, const StepLimits& limits,
        const std::atomic<int32_t>& cancelled)
      : device_(device),
        step_(step),
        limits_(limits),
        cancelled_(cancelled),
        places_(device, step),
        kernels_(device.sequence(kernels_of(step))) {}

  StepsDone run() {
    try {
      const Clock::time_point start = Clock::now();
      do {
        run_one(limits_.begin + done_.steps);
        ++done_.steps;
        done_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      } while (!is_over());
    } catch (...) {
      places_.go_home();
      throw;
    }
    places_.go_home();
    return std::move(done_);
  }

 private:
  bool is_over() const {
    const uint64_t next = limits_.begin + done_.steps;
    return done_.ended || next >= limits_.end || done_.seconds >= limits_.seconds ||
           (limits_.at_pass && step_.batches != 0 && next % step_.batches == 0);
  }

  void run_one(uint64_t number) {
    if (step_.batches != 0) places_.move_to(number % step_.batches);
    if (step_.step_slot) {
      const auto value = static_cast<int64_t>(limits_.number_of_first + number);
      device_.copy_in(places_.of(*step_.step_slot), &value, sizeof value);
    }
    kernels_->run(places_.of_kernels(), places_.copies(), &cancelled_);
    for (const StepNumber& report : step_.reports) {
      const double value = read(report);
      if (limits_.stop_on_nan && std::isnan(value)) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_NAN",
             "{} is NaN in step {} of {}; the parameters are those before it", report.name, number,
             step_.program);
      }
      done_.reports.push_back(value);
    }
    if (step_.until) done_.ended = read(*step_.until) != 0;
    places_.exchange();
  }

  double read(const StepNumber& number) const {
    std::byte bytes[8] = {};
    device_.copy_out(bytes, places_.of(number.slot), size_of(number.type));
    return number_of(number.type, bytes);
  }

  Device& device_;
  const Step& step_;
  const StepLimits& limits_;
  const std::atomic<int32_t>& cancelled_;
  Places places_;
  const std::unique_ptr<KernelSequence> kernels_;
  StepsDone done_;
};

}  // namespace

StepsDone run_steps(Device& device, const Step& step, const StepLimits& limits,
                    const std::atomic<int32_t>& cancelled) {
  return Steps(device, step, limits, cancelled).run();
}

}  // namespace kiln

// The loop over the steps of a program: the kernels of a step one after the other, without a look
// at anything but them, then its numbers, then the exchange of each parameter with what it becomes.
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

/// What kernels of a GPU may take of the beginning of a tensor: they move so many bytes at once.
constexpr uintptr_t kGpuAlignment = 16;

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
      : device_(device),
        step_(step),
        aligned_(step.slots.size()),
        needs_alignment_(!traits_of(device.target()).is_host) {
    for (const StepSlot& slot : step.slots)
      now_.push_back(slot.data);
    for (const StepKernel& kernel : step.kernels) {
      std::vector<void*>& pointers = pointers_.emplace_back();
      for (const uint32_t slot : kernel.slots)
        pointers.push_back(step.slots[slot].data);
    }
  }

  void* of(uint32_t slot) const { return now_[slot]; }
  std::span<void* const> of_kernel(size_t kernel) const { return pointers_[kernel]; }

  /// The data sets at the rows of this step.
  void move_to(uint64_t batch) {
    for (size_t slot = 0; slot < now_.size(); ++slot) {
      const StepSlot& each = step_.slots[slot];
      if (!each.is_data_set) continue;
      now_[slot] = aligned(
          slot, static_cast<uint8_t*>(each.data) + static_cast<int64_t>(batch) * each.bytes);
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
  /// The rows where they lie, or a copy where they begin in the middle of what moves at once.
  void* aligned(size_t slot, void* rows) {
    if (!needs_alignment_ || reinterpret_cast<uintptr_t>(rows) % kGpuAlignment == 0) return rows;
    const int64_t bytes = step_.slots[slot].bytes;
    if (!aligned_[slot]) aligned_[slot] = device_.allocate(bytes);
    device_.copy_within(aligned_[slot]->data(), rows, bytes);
    return aligned_[slot]->data();
  }

  void follow() {
    for (size_t k = 0; k < pointers_.size(); ++k) {
      for (size_t i = 0; i < pointers_[k].size(); ++i)
        pointers_[k][i] = now_[step_.kernels[k].slots[i]];
    }
  }

  Device& device_;
  const Step& step_;
  std::vector<void*> now_;                              // by slot
  std::vector<std::vector<void*>> pointers_;            // by kernel
  std::vector<std::unique_ptr<DeviceBuffer>> aligned_;  // by slot, where one was needed
  const bool needs_alignment_;
  bool exchanged_ = false;
};

class Steps {
 public:
  Steps(Device& device, const Step& step, const StepLimits& limits,
        const std::atomic<int32_t>& cancelled)
      : device_(device),
        step_(step),
        limits_(limits),
        cancelled_(cancelled),
        places_(device, step) {}

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
    for (size_t k = 0; k < step_.kernels.size(); ++k) {
      const StepKernel& kernel = step_.kernels[k];
      device_.run(*kernel.kernel, {.tensors = places_.of_kernel(k),
                                   .bound = &kernel.bound,
                                   .names = kernel.names,
                                   .cancelled = &cancelled_});
    }
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
  StepsDone done_;
};

}  // namespace

StepsDone run_steps(Device& device, const Step& step, const StepLimits& limits,
                    const std::atomic<int32_t>& cancelled) {
  return Steps(device, step, limits, cancelled).run();
}

}  // namespace kiln

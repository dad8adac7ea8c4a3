// Predicts the launches of a kernel: what their threads compute, issue and move, over what the
// multiprocessors do in a cycle. The largest of these is the time, as on a CPU.
//
//   4096 x 4096 x 4096 in tiles of 128 x 128 on an H100
//     ->   multiply-adds 4.19 M cycles, issue 4.68 M, shared 2.75 M, L2 1.45 M, memory 0.11 M
//
// Counting as in S. Hong and H. Kim, "An Analytical Model for a GPU Architecture with Memory-level
// and Thread-level Parallelism Awareness", 2009, with one latency for all loads. No GPU has
// confirmed a figure.
#include "compiler/predict/predict_gpu.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/predict/nest.h"

namespace kiln::predict {
namespace {

using ir::LoopKind;
using ir::Operator;
using ir::ThreadAxis;

using autoschedule::kSchedulers;
using autoschedule::kSharedBytes;

constexpr double kWarp = 32;
constexpr double kBanks = 32;
constexpr double kVectorBytes = 16;  // of one access
constexpr double kSectorBytes = 32;  // that come from L2 for a byte of them
// Of a load from memory, and of an operation that the next one waits for: estimated. Barriers are
// not counted.
constexpr double kLoadCycles = 600;
constexpr double kOperationCycles = 4;
// Instructions of a loop's end, of a function and of a division, and what a launch takes:
// estimated.
constexpr double kLoopInstructions = 3;
constexpr double kFunctionInstructions = 8;
constexpr double kDivisionInstructions = 9;
constexpr double kLaunchSeconds = 2e-6;

/// What one thread does.
struct Work {
  double multiply_adds = 0;
  double instructions = 0;
  double shared_cycles = 0;  // of a warp, at 128 bytes a cycle
  double global_bytes = 0;   // of a warp, in sectors
  double waits = 0;          // cycles in which it cannot go on

  Work& operator+=(const Work& other) {
    multiply_adds += other.multiply_adds;
    instructions += other.instructions;
    shared_cycles += other.shared_cycles;
    global_bytes += other.global_bytes;
    waits += other.waits;
    return *this;
  }
  Work times(double count) const {
    return {multiply_adds * count, instructions * count, shared_cycles * count,
            global_bytes * count, waits * count};
  }
};

bool is_block(ThreadAxis axis) {
  return axis == ThreadAxis::BlockX || axis == ThreadAxis::BlockY || axis == ThreadAxis::BlockZ;
}

double instructions_of(const Operations& operations) {
  if (operations.op == Operator::Div || operations.op == Operator::Sqrt)
    return kDivisionInstructions;
  const bool is_function = operations.op >= Operator::Exp && operations.op <= Operator::Hypot;
  return is_function && operations.op != Operator::Fma ? kFunctionInstructions : 1;
}

/// Accesses as code has them: neighbours up to 16 bytes are one.
std::vector<Touch> merged(std::vector<Touch> touches) {
  const auto key = [](const Touch& touch) {
    return std::tuple(touch.buffer.get(), touch.is_store, touch.is_gather, touch.lanes,
                      touch.strides, touch.first);
  };
  std::ranges::sort(touches, {}, key);
  std::vector<Touch> result;
  for (Touch& touch : touches) {
    const bool follows = !result.empty() && result.back().buffer == touch.buffer &&
                         result.back().is_store == touch.is_store && !touch.is_gather &&
                         !result.back().is_gather && result.back().strides == touch.strides &&
                         result.back().first + result.back().lanes == touch.first;
    const auto bytes = static_cast<double>((follows ? result.back().lanes + touch.lanes : 0) *
                                           touch.element_bytes);
    if (follows && bytes <= kVectorBytes) {
      result.back().lanes += touch.lanes;
    } else {
      result.push_back(std::move(touch));
    }
  }
  return result;
}

/// A launch: the loops over its threads, and what is in them.
class Launch {
 public:
  explicit Launch(size_t depth) : depth_(depth) {}

  void read(const Nest& nest) {
    const Nest* at = &nest;
    size_t depth = depth_;
    while (at->kind == LoopKind::ThreadIndex) {
      (is_block(at->thread) ? blocks : threads) *= at->extent;
      if (at->thread == ThreadAxis::ThreadX) along_x_ = {depth, at->extent};
      if (at->thread == ThreadAxis::ThreadY) along_y_ = {depth, at->extent};
      ++depth;
      const bool goes_on = at->inner.size() == 1 && at->touches.empty() &&
                           at->inner[0].kind == LoopKind::ThreadIndex;
      if (!goes_on) break;
      at = &at->inner[0];
    }
    work = of_body(*at);
  }

  double blocks = 1;
  double threads = 1;
  Work work;
  std::set<const ir::Buffer*> touched;  // in memory
  double memory_bytes = 0;              // of these

 private:
  struct Axis {
    size_t depth = SIZE_MAX;
    double extent = 1;
  };

  /// Of all iterations of a serial loop.
  Work of(const Nest& nest) {
    Work work = of_body(nest);
    work.instructions += kLoopInstructions;
    return work.times(nest.kind == LoopKind::ThreadIndex ? 1 : nest.extent);
  }

  Work of_body(const Nest& nest) {
    Work work;
    for (const Operations& operations : nest.operations) {
      const double count = operations.count * static_cast<double>(operations.lanes);
      work.instructions += count * instructions_of(operations);
      const bool multiplies = operations.op == Operator::Mul || operations.op == Operator::Add ||
                              operations.op == Operator::Sub || operations.op == Operator::Fma;
      if (operations.is_float && multiplies) work.multiply_adds += count;
    }
    work.waits += static_cast<double>(nest.chain.updates) * kOperationCycles;
    bool loads = false;
    for (const Touch& touch : merged(nest.touches)) {
      add(touch, work);
      loads = loads || (touch.buffer->scope == ir::Scope::Global && !touch.is_store);
    }
    if (loads) work.waits += kLoadCycles;
    for (const Nest& inner : nest.inner)
      work += of(inner);
    return work;
  }

  static double stride(const Touch& touch, const Axis& axis) {
    return axis.depth < touch.strides.size()
               ? std::abs(static_cast<double>(touch.strides[axis.depth]))
               : 0;
  }

  void add(const Touch& touch, Work& work) {
    const auto bytes = static_cast<double>(touch.element_bytes * touch.lanes);
    work.instructions +=
        touch.is_gather ? static_cast<double>(touch.lanes) : std::ceil(bytes / kVectorBytes);
    const double x = std::min(along_x_.extent, kWarp);
    const double y = std::min(std::max(kWarp / x, 1.0), along_y_.extent);
    const double across_x = stride(touch, along_x_);
    const double across_y = stride(touch, along_y_);
    const double different = (across_x != 0 ? x : 1) * (across_y != 0 ? y : 1);
    if (touch.buffer->scope == ir::Scope::Shared) {
      const double words = across_x * static_cast<double>(touch.element_bytes) / 4;
      const auto step = static_cast<int64_t>(std::max(words, 1.0));
      const double banks = kBanks / static_cast<double>(std::gcd<int64_t>(step, 32));
      const double conflicts = touch.lanes == 1 && across_x != 0 ? std::max(x / banks, 1.0) : 1;
      work.shared_cycles += std::max(different * bytes / kSharedBytes, 1.0) * conflicts;
      return;
    }
    if (touch.buffer->scope != ir::Scope::Global) return;
    if (touched.insert(touch.buffer.get()).second) memory_bytes += touch.buffer_bytes;
    const bool is_dense = across_x * static_cast<double>(touch.element_bytes) <= bytes;
    work.global_bytes += is_dense ? std::max(different * bytes, kSectorBytes)
                                  : different * std::max(bytes, kSectorBytes);
  }

  size_t depth_;
  Axis along_x_;
  Axis along_y_;
};

/// Sums over launches, in cycles.
struct Sums {
  double multiply_adds = 0;
  double issue = 0;
  double shared = 0;
  double l2 = 0;
  double memory = 0;
  double latency = 0;
  double launches = 0;
  double all = 0;  // of the slowest, launch by launch
};

class Gpu {
 public:
  Gpu(const autoschedule::GpuMachine& machine, const ir::GpuArch& arch)
      : machine_(machine), arch_(arch) {}

  /// The launches in a loop that has so many loops around it; outside of them is the host's.
  void add(const Nest& loop, double times, size_t depth) {
    if (loop.kind == LoopKind::ThreadIndex) {
      add_launch(loop, times, depth);
      return;
    }
    for (const Nest& inner : loop.inner)
      add(inner, times * loop.extent, depth + 1);
  }

  Sums sums;

 private:
  void add_launch(const Nest& nest, double times, size_t depth) {
    Launch launch(depth);
    launch.read(nest);
    const Work& work = launch.work;
    const double warps = std::ceil(launch.threads / kWarp);
    const auto multiprocessors = static_cast<double>(machine_.multiprocessors);
    // Of the busiest multiprocessor.
    const double blocks = std::ceil(launch.blocks / multiprocessors);
    const double own = blocks * warps;
    const double multiply_adds =
        work.multiply_adds * own * kWarp / static_cast<double>(machine_.float_lanes);
    const double issue = work.instructions * own / kSchedulers;
    const double shared = work.shared_cycles * own;
    const double l2 = work.global_bytes * own / machine_.l2_bytes;
    const bool stays = launch.memory_bytes <= static_cast<double>(machine_.l2_size);
    const double memory =
        stays ? 0 : launch.memory_bytes / (machine_.memory_bytes * multiprocessors);
    const double resident =
        std::clamp(std::floor(static_cast<double>(arch_.threads) / std::max(launch.threads, 1.0)),
                   1.0, static_cast<double>(arch_.blocks));
    const double latency = work.waits * std::ceil(blocks / resident);
    sums.multiply_adds += times * multiply_adds;
    sums.issue += times * issue;
    sums.shared += times * shared;
    sums.l2 += times * l2;
    sums.memory += times * memory;
    sums.latency += times * latency;
    sums.launches += times * kLaunchSeconds * machine_.gigahertz * 1e9;
    sums.all += times * std::max({multiply_adds, issue, shared, l2, memory, latency});
  }

  const autoschedule::GpuMachine& machine_;
  const ir::GpuArch& arch_;
};

}  // namespace

Prediction predict_gpu(const ir::Kernel& kernel, std::span<const int64_t> sizes,
                       const autoschedule::GpuMachine& machine, const ir::GpuArch& arch) {
  constexpr int64_t kRegisterBytes = 255 * 4;  // of a thread
  Gpu gpu(machine, arch);
  for (const Nest& loop : nest_of(kernel, sizes, kRegisterBytes).inner)
    gpu.add(loop, 1, 0);
  const Sums& sums = gpu.sums;
  return prediction_of({{"multiply-adds", sums.multiply_adds},
                        {"issue", sums.issue},
                        {"latency", sums.latency},
                        {"shared", sums.shared},
                        {"L2", sums.l2},
                        {"memory", sums.memory},
                        {"launch by launch", sums.all},
                        {"launches", sums.launches, true}},
                       machine.gigahertz);
}

}  // namespace kiln::predict

// Predicts the launches of a kernel: what their threads compute, issue and move, over what the
// multiprocessors do in a cycle. The largest of these is the time, as on a CPU.
//
//   4096 x 4096 x 4096 in tiles of 128 x 128 on an H100
//     ->   multiply-adds 4.19 M cycles, issue 4.68 M, shared 2.75 M, L2 1.45 M, memory 0.11 M
//
// Counting as in S. Hong and H. Kim, "An Analytical Model for a GPU Architecture with Memory-level
// and Thread-level Parallelism Awareness", 2009, with one latency for all loads. Where the machine
// code is there, it says how many instructions a product takes, which of them wait for the stack,
// and how many blocks run at once. No GPU has confirmed a figure.
#include "compiler/predict/predict_gpu.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler/ir/matrix_unit.h"
#include "compiler/predict/launch_work.h"

namespace kiln::predict {
namespace {

using autoschedule::kSchedulers;

/// Sums over launches, in cycles.
struct Sums {
  double multiply_adds = 0;
  double tensor_cores = 0;
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
  Gpu(const autoschedule::GpuMachine& machine, const ir::GpuArch& arch,
      std::span<const LaunchFacts> facts)
      : machine_(machine), arch_(arch), facts_(facts) {}

  /// The launches in a loop that has so many loops around it; outside of them is the host's.
  void add(const Nest& loop, double times, size_t depth) {
    // What is bound to no threads is a launch of one.
    if (loop.kind != ir::LoopKind::Host) {
      add_launch(loop, times, depth);
      return;
    }
    for (const Nest& inner : loop.inner)
      add(inner, times * loop.extent, depth + 1);
  }

  Sums sums;

 private:
  void add_launch(const Nest& nest, double times, size_t depth) {
    const LaunchWork launch = launch_work(nest, depth, machine_.multiprocessors);
    static constexpr LaunchFacts kNone;
    const LaunchFacts& facts = launches_ < facts_.size() ? facts_[launches_] : kNone;
    ++launches_;
    const ThreadWork& work = launch.work;
    const double warps = std::ceil(launch.threads / kWarp);
    const auto multiprocessors = static_cast<double>(machine_.multiprocessors);
    // Of the busiest multiprocessor.
    const double blocks = std::ceil(launch.blocks / multiprocessors);
    const double own = blocks * warps;
    // Where the loops say what tensor cores multiply, the others are the rest of the sum.
    const bool has_matrices =
        facts.unit != LaunchFacts::Unit::Lanes && work.matrix_instructions == 0;
    const double multiply_adds =
        has_matrices ? 0
                     : work.multiply_adds * own * kWarp / static_cast<double>(machine_.float_lanes);
    const double tensor_cores = tensor_core_cycles(work, facts) * own;
    const double issue = instructions_of(work, facts) * own / kSchedulers;
    const double shared = shared_cycles_of(work, facts) * own;
    // All multiprocessors share L2, of which one alone gets no more than its own way to it takes.
    const double l2_of_one = work.global_bytes * own / autoschedule::kL2BytesOfOne;
    const double l2 = std::max(l2_of_one, work.global_bytes * launch.blocks * warps /
                                              (machine_.l2_bytes * multiprocessors));
    const bool stays = launch.memory_bytes <= static_cast<double>(machine_.l2_size);
    const double memory =
        stays ? 0 : launch.memory_bytes / (machine_.memory_bytes * multiprocessors);
    // What a block computes between its waits others do not shorten, which work meanwhile.
    const double between =
        work.takes_turns
            ? std::max({multiply_adds, tensor_cores, issue, shared, l2_of_one}) / blocks
            : 0;
    const double load_waits =
        work.load_waits * (stays ? autoschedule::kL2LoadCycles / autoschedule::kLoadCycles : 1);
    const double latency =
        (std::max(work.waits, load_waits) + between) * std::ceil(blocks / at_once(launch, facts));
    sums.multiply_adds += times * multiply_adds;
    sums.tensor_cores += times * tensor_cores;
    sums.issue += times * issue;
    sums.shared += times * shared;
    sums.l2 += times * l2;
    sums.memory += times * memory;
    sums.latency += times * latency;
    sums.launches += times * autoschedule::kLaunchSeconds * machine_.gigahertz * 1e9;
    sums.all += times * std::max({multiply_adds, tensor_cores, issue, shared, l2, memory, latency});
  }

  /// Of a warp. The loops say what tensor cores multiply where they are in the order of fragments.
  double tensor_core_cycles(const ThreadWork& work, LaunchFacts facts) const {
    if (work.matrix_products > 0) {
      facts.element_bytes = work.matrix_bytes;
      return work.matrix_products / rate_of(facts);
    }
    const bool has_matrices = facts.unit != LaunchFacts::Unit::Lanes;
    return has_matrices ? work.products * kWarp / rate_of(facts) : 0;
  }

  /// Multiply-adds of tensor cores in a cycle.
  double rate_of(const LaunchFacts& facts) const {
    return static_cast<double>(machine_.matrix_lanes) * 2 /
           static_cast<double>(facts.element_bytes) * machine_.warp_share;
  }

  /// Of a warp, those of the code that multiply.
  static double multiplications(const ThreadWork& work, const LaunchFacts& facts) {
    if (facts.unit != LaunchFacts::Unit::Warps) return work.multiply_adds;
    return work.matrix_instructions > 0 ? work.matrix_instructions
                                        : work.products * kWarp / facts.products;
  }

  /// Of a warp. Code has addresses and branches that loops leave out, and fewer casts where tensor
  /// cores take values as they are.
  static double instructions_of(const ThreadWork& work, const LaunchFacts& facts) {
    if (facts.instructions > 0)
      return std::max(work.instructions, static_cast<double>(facts.instructions));
    if (facts.share == 0) return work.instructions;
    const double of_loop = multiplications(work, facts) / facts.share;
    if (facts.unit == LaunchFacts::Unit::Lanes) return std::max(work.instructions, of_loop);
    return of_loop + (work.matrix_instructions > 0 ? work.rest_instructions : 0);
  }

  /// Of a warp. Matrices are loaded in other pieces than the elements of the loops.
  static double shared_cycles_of(const ThreadWork& work, const LaunchFacts& facts) {
    const double spilled = facts.spills * multiplications(work, facts);
    if (facts.unit != LaunchFacts::Unit::Warps) return work.shared_cycles + spilled;
    const double rest = work.matrix_instructions > 0 ? work.rest_shared_cycles : 0;
    return facts.shared_cycles * multiplications(work, facts) + rest + spilled;
  }

  /// Blocks of a launch on a multiprocessor, by their threads and by their registers.
  double at_once(const LaunchWork& launch, const LaunchFacts& facts) const {
    if (facts.blocks_at_once > 0) return static_cast<double>(facts.blocks_at_once);
    const double threads = std::max(launch.threads, 1.0);
    const double registers = threads * static_cast<double>(std::max<int64_t>(launch.registers, 1));
    const double fit = std::min(static_cast<double>(arch_.threads) / threads,
                                static_cast<double>(arch_.registers) / registers);
    return std::clamp(std::floor(fit), 1.0, static_cast<double>(arch_.blocks));
  }

  const autoschedule::GpuMachine& machine_;
  const ir::GpuArch& arch_;
  const std::span<const LaunchFacts> facts_;
  size_t launches_ = 0;  // so far
};

}  // namespace

Prediction predict_gpu(const ir::Kernel& kernel, std::span<const int64_t> sizes,
                       const autoschedule::GpuMachine& machine, const ir::GpuArch& arch,
                       std::span<const LaunchFacts> facts) {
  constexpr int64_t kRegisterBytes = 255 * 4;  // of a thread
  Gpu gpu(machine, arch, facts);
  const HasMatrices has_matrices = [&](DType a, DType b) {
    const auto unit = a == DType::Float32 ? ir::tensor_float_unit() : ir::matrix_unit(a, b);
    return unit && arch.capability >= unit->first_capability;
  };
  for (const Nest& loop : nest_of(kernel, sizes, kRegisterBytes, has_matrices).inner)
    gpu.add(loop, 1, 0);
  const Sums& sums = gpu.sums;
  std::vector<Term> terms = {{"multiply-adds", sums.multiply_adds},
                             {"issue", sums.issue},
                             {"latency", sums.latency},
                             {"shared", sums.shared},
                             {"L2", sums.l2},
                             {"memory", sums.memory},
                             {"launches", sums.launches, true}};
  if (!facts.empty() || sums.tensor_cores > 0)
    terms.insert(terms.begin() + 1, {"tensor cores", sums.tensor_cores});
  // Launches that are bound by other terms than the one that takes the most of all together.
  const double largest = std::ranges::max(terms, {}, [](const Term& term) {
                           return term.on_top ? 0 : term.cycles;
                         }).cycles;
  terms.push_back({"launch by launch", std::max(sums.all - largest, 0.0), true});
  return prediction_of(std::move(terms), machine.gigahertz);
}

}  // namespace kiln::predict

// Counts what the threads of a launch do. Loops over threads stand outside; what is in them one
// thread does, and a warp what its neighbours along x and y touch together.
//
//   for b bind(blockIdx.x) { for t bind(threadIdx.x) { C[b*256 + t] = A[b*256 + t*8] } }
//     ->  a warp stores 128 bytes, and loads 32 sectors of 32 bytes
#include "compiler/predict/launch_work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/autoschedule/recognise/instructions.h"
#include "compiler/autoschedule/templates/gpu_machine.h"

namespace kiln::predict {
namespace {

using ir::LoopKind;
using ir::Operator;
using ir::ThreadAxis;

using autoschedule::kLoadCycles;

constexpr int64_t kVectorBytes = autoschedule::kVectorBytesOfThread;
constexpr int64_t kMatricesOfLoad = 4;
// Of a thread, beside what it has in buffers: addresses, counters and elements on their way
// (estimated: sm_90's code has 6 to 30), and the most that it can have.
constexpr int64_t kOtherRegisters = 24;
constexpr int64_t kMostRegisters = 255;
// Of an operation that the next one waits for: estimated. Barriers are not counted. Of a short loop
// all loads are under way at once.
constexpr double kOperationCycles = 4;
constexpr double kShortLoop = 32;
constexpr double kLoopInstructions = 3;  // of a loop's end: estimated

bool is_block(ThreadAxis axis) {
  return axis == ThreadAxis::BlockX || axis == ThreadAxis::BlockY || axis == ThreadAxis::BlockZ;
}

class Launch : public LaunchWork {
 public:
  Launch(size_t depth, int64_t multiprocessors)
      : depth_(depth), multiprocessors_(static_cast<double>(multiprocessors)) {}

  void read(const Nest& nest) {
    const Nest* at = &nest;
    size_t depth = depth_;
    while (at->kind == LoopKind::ThreadIndex) {
      (is_block(at->thread) ? blocks : threads) *= at->extent;
      if (const std::optional<size_t> axis = number_of(at->thread))
        threads_[*axis] = {depth, static_cast<int64_t>(at->extent)};
      ++depth;
      const bool goes_on = at->inner.size() == 1 && at->touches.empty() &&
                           at->inner[0].kind == LoopKind::ThreadIndex;
      if (!goes_on) break;
      at = &at->inner[0];
    }
    under_way_ = autoschedule::loads_under_way(std::ceil(blocks / multiprocessors_) * threads);
    registers = std::min(nest.words_of_thread + kOtherRegisters, kMostRegisters);
    work = at->kind == LoopKind::ThreadIndex ? of_body(*at) : of(*at);
  }

  std::vector<AccessRow> rows;

 private:
  /// Of threadIdx.x, .y and .z.
  static std::optional<size_t> number_of(ThreadAxis axis) {
    switch (axis) {
      case ThreadAxis::ThreadX: return 0;
      case ThreadAxis::ThreadY: return 1;
      case ThreadAxis::ThreadZ: return 2;
      default: return std::nullopt;
    }
  }

  /// Of all iterations of a serial loop.
  ThreadWork of(const Nest& nest) {
    ThreadWork work = of_body(nest);
    work.instructions += kLoopInstructions;
    if (nest.kind == LoopKind::ThreadIndex) return work;
    const double loads = work.load_waits;
    work = work.times(nest.extent);
    if (nest.inner.empty())
      work.load_waits = nest.extent <= kShortLoop
                            ? loads
                            : loads * std::ceil(nest.extent / iterations_under_way(nest));
    return work;
  }

  /// Of a loop whose loads are under way together with those of the next iterations.
  double iterations_under_way(const Nest& nest) const {
    const auto loads =
        static_cast<double>(std::ranges::count_if(merged(nest.touches), [](const Touch& touch) {
          return touch.buffer->scope == ir::Scope::Global && !touch.is_store;
        }));
    return std::max(std::floor(under_way_ / std::max(loads, 1.0)), 1.0);
  }

  /// Whether a body stores to shared memory what it loads from memory: threads wait for it, where
  /// others that load ahead have it in registers meanwhile.
  static bool fills_shared(const Nest& nest) {
    const auto has = [&](ir::Scope scope, bool is_store) {
      return std::ranges::any_of(nest.touches, [&](const Touch& touch) {
        return touch.buffer->scope == scope && touch.is_store == is_store && !touch.is_background;
      });
    };
    return has(ir::Scope::Global, false) && has(ir::Scope::Shared, true);
  }

  ThreadWork of_body(const Nest& nest) {
    ThreadWork work;
    work.takes_turns = fills_shared(nest);
    for (const Operations& operations : nest.operations) {
      const double count = operations.count * static_cast<double>(operations.lanes);
      work.instructions += count * autoschedule::thread_instructions(operations.op);
      const bool multiplies = operations.op == Operator::Mul || operations.op == Operator::Add ||
                              operations.op == Operator::Sub || operations.op == Operator::Fma;
      if (operations.is_float && multiplies) work.multiply_adds += count;
      if (operations.op == Operator::Mul) work.products += count;
    }
    add(nest.matrices, work);
    work.waits += static_cast<double>(nest.chain.updates) * kOperationCycles;
    double fetched = 0;  // what is loaded before it is used is under way together
    const std::vector<Touch> touches = merged(nest.touches);
    for (const Touch& touch : touches) {
      add(touch, touch.is_store ? 1 : share_of_its_own(touch, touches), work);
      if (touch.buffer->scope == ir::Scope::Global && !touch.is_store) fetched = kLoadCycles;
    }
    for (const Nest& inner : nest.inner) {
      ThreadWork own = of(inner);
      note_rest(own);
      if (own.load_waits <= kLoadCycles)
        fetched = std::max(fetched, std::exchange(own.load_waits, 0));
      work += own;
    }
    work.load_waits += fetched;
    return work;
  }

  /// A loop that multiplies what lies in shared memory, and has no matrices, is the rest of a sum
  /// where there are some around it.
  static void note_rest(ThreadWork& work) {
    const bool is_rest = work.matrix_instructions == 0 && work.products > 0 &&
                         work.shared_cycles > 0 && work.global_bytes == 0;
    if (!is_rest) return;
    work.rest_instructions = work.instructions;
    work.rest_shared_cycles = work.shared_cycles;
  }

  void add(const Matrices& matrices, ThreadWork& work) {
    if (matrices.instructions == 0) return;
    work.instructions += static_cast<double>(matrices.instructions);
    work.matrix_instructions += static_cast<double>(matrices.instructions);
    work.matrix_products += static_cast<double>(matrices.instructions * matrices.products);
    work.matrix_bytes = matrices.element_bytes;
    for (const MatrixLoads& loads : matrices.loads) {
      const bool are_words = loads.bytes < kVectorBytes;
      const WarpAccess each = matrix_access(loads.places, loads.bytes);
      work.instructions += static_cast<double>(loads.count * (are_words ? kMatricesOfLoad : 1));
      work.shared_cycles += static_cast<double>(loads.count * kMatricesOfLoad * each.wavefronts);
      note({loads.buffer, false, !are_words, loads.bytes, each});
    }
  }

  /// Elements from one thread along x to the next.
  double stride_of_threads(const Touch& touch) const {
    const ThreadLoop& axis = threads_[0];
    return axis.depth < touch.strides.size()
               ? std::abs(static_cast<double>(touch.strides[axis.depth]))
               : 0;
  }

  /// Accesses as code has them: neighbours up to 16 bytes are one, where the next thread's are
  /// others.
  std::vector<Touch> merged(std::vector<Touch> touches) const {
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
      const auto lanes = static_cast<double>(follows ? result.back().lanes + touch.lanes : 0);
      const double across = stride_of_threads(touch);
      const bool is_apart = across == 0 || across >= lanes;
      const double bytes = lanes * static_cast<double>(touch.element_bytes);
      if (follows && is_apart && bytes <= static_cast<double>(kVectorBytes)) {
        result.back().lanes += touch.lanes;
      } else {
        result.push_back(std::move(touch));
      }
    }
    return result;
  }

  /// The part of what the threads of a block along x load that none of the accesses before loads,
  /// as those of a window that slides do: L1 has it.
  double share_of_its_own(const Touch& touch, const std::vector<Touch>& all) const {
    const double across = stride_of_threads(touch);
    if (across == 0 ||
        across * static_cast<double>(touch.element_bytes) > static_cast<double>(kSectorBytes))
      return 1;
    const double length =
        across * static_cast<double>(threads_[0].extent - 1) + static_cast<double>(touch.lanes);
    double nearest = length;
    for (const Touch& other : all) {
      const auto ahead = static_cast<double>(touch.first - other.first);
      if (other.buffer == touch.buffer && !other.is_store && other.strides == touch.strides &&
          other.lanes == touch.lanes && ahead > 0)
        nearest = std::min(nearest, ahead);
    }
    return nearest / length;
  }

  void add(const Touch& touch, double share, ThreadWork& work) {
    const auto bytes = static_cast<double>(touch.element_bytes * touch.lanes);
    work.instructions += touch.is_gather ? static_cast<double>(touch.lanes)
                                         : std::ceil(bytes / static_cast<double>(kVectorBytes));
    const bool is_shared = touch.buffer->scope == ir::Scope::Shared;
    if (!is_shared && touch.buffer->scope != ir::Scope::Global) return;
    const WarpAccess takes = warp_access(touch, threads_);
    note({touch.buffer, touch.is_store, false, touch.element_bytes * touch.lanes, takes});
    if (is_shared) {
      work.shared_cycles += static_cast<double>(takes.wavefronts);
      return;
    }
    if (touched_.insert(touch.buffer.get()).second) memory_bytes += touch.buffer_bytes;
    work.global_bytes += share * static_cast<double>(takes.sectors * kSectorBytes);
  }

  void note(AccessRow row) {
    const auto is_same = [&](const AccessRow& other) {
      const bool takes_same = row.is_shared() ? other.takes.wavefronts == row.takes.wavefronts &&
                                                    other.takes.fewest == row.takes.fewest
                                              : other.takes.sectors == row.takes.sectors;
      return other.buffer == row.buffer && other.is_store == row.is_store &&
             other.is_matrix == row.is_matrix && other.bytes == row.bytes && takes_same;
    };
    if (std::ranges::none_of(rows, is_same)) rows.push_back(std::move(row));
  }

  size_t depth_;
  double multiprocessors_;
  double under_way_ = 1;                 // loads of a loop
  std::set<const ir::Buffer*> touched_;  // in memory
  ThreadLoops threads_;
};

}  // namespace

std::vector<AccessRow> accesses_of_launch(const Nest& nest, size_t depth) {
  Launch launch(depth, 1);
  launch.read(nest);
  return std::move(launch.rows);
}

LaunchWork launch_work(const Nest& nest, size_t depth, int64_t multiprocessors) {
  Launch launch(depth, multiprocessors);
  launch.read(nest);
  return launch;
}

}  // namespace kiln::predict

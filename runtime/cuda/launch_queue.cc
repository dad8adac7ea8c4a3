// Gives launches to the driver, in one order: those of a call, or of calls one after the other. The
// driver takes some microseconds for each, so what comes again with the same values is recorded
// and started as one graph:
//
//   first time   launch a, launch b, launch c
//   second time  record them, start the graph
//   from then on start the graph
#include "runtime/cuda/launch_queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/core/error.h"
#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {
namespace {

int64_t launches_of(const PreparedCall& call, int64_t most) {
  const Variant& variant = call.kernel->variant(call.values.variant);
  auto launches = static_cast<int64_t>(variant.launches.size());
  for (const LaunchLoop& loop : variant.loops) {
    const int64_t times = std::min(loop.count.evaluate(call.values.scalars), most);
    launches += (loop.end - loop.first) * (times - 1);
  }
  return launches;
}

/// Whether launches that come again are sooner started as one graph: of a single one there is
/// nothing to gain, and of very many the graph is larger than what it is for.
bool is_worth_a_graph(std::span<const PreparedCall> calls) {
  constexpr int64_t kMostLaunches = 1024;
  int64_t launches = 0;
  for (const PreparedCall& call : calls)
    launches += launches_of(call, kMostLaunches);
  return launches > 1 && launches <= kMostLaunches;
}

/// Completes "the driver could not run ...".
std::string named(std::span<const PreparedCall> calls) {
  if (calls.empty()) return "a step";
  if (calls.size() == 1) return calls[0].called;
  return fmt::format("{} and the {} kernels after it", calls[0].called, calls.size() - 1);
}

}  // namespace

LaunchQueue::LaunchQueue(const DriverApi& api) : api_(api), compute_(api), begin_(api), end_(api) {}

double LaunchQueue::run(std::span<PreparedCall> calls, std::span<const DeviceCopy> copies,
                        Launches& last) {
  noting_launches([&] {
    for (const DeviceCopy& copy : copies) {
      if (copy.bytes == 0) continue;
      check(api_,
            api_.copy_within(reinterpret_cast<DevicePointer>(copy.to),
                             reinterpret_cast<DevicePointer>(copy.from),
                             static_cast<size_t>(copy.bytes), compute_.handle()),
            "copy within the device");
    }
    begin_.record(compute_);
    try {
      start(calls, last);
    } catch (...) {
      compute_.wait("run " + named(calls));
      throw;
    }
    end_.record(compute_);
    end_.wait("run " + named(calls));
  });
  return begin_.seconds_until(end_);
}

void LaunchQueue::start(std::span<PreparedCall> calls, Launches& last) {
  const auto launch_all = [&] {
    for (PreparedCall& call : calls)
      launch(call);
  };
  const bool is_repeated = is_worth_a_graph(calls) &&
                           std::ranges::equal(last.values, calls, {}, {}, &PreparedCall::values);
  if (!is_repeated) {
    last = {};
    launch_all();
    for (PreparedCall& call : calls)
      last.values.push_back(std::move(call.values));
    return;
  }
  if (!last.graph) last.graph = std::make_unique<Graph>(api_, compute_, launch_all);
  last.graph->launch(compute_, "start " + named(calls));
}

void LaunchQueue::launch(PreparedCall& call) {
  const std::vector<void*>& functions = call.kernel->functions(call.values.variant);
  const Variant& variant = call.kernel->variant(call.values.variant);
  std::vector<void*> parameters = call.values.addresses();
  for_each_launch(variant, call.values.scalars, [&](size_t i, int64_t iteration) {
    const LaunchSize& size = call.sizes[i];
    if (size.is_empty()) return;
    call.values.iteration = iteration;
    // Of a kernel that does not ask for more, as every device has it.
    constexpr unsigned kSharedWithoutAsking = 48 * 1024;
    if (size.shared_bytes > kSharedWithoutAsking) {
      check(api_,
            api_.set_function_attribute(functions[i], kFunctionMaxDynamicSharedBytes,
                                        static_cast<int>(size.shared_bytes)),
            fmt::format("give the kernel {} bytes of shared memory", size.shared_bytes));
    }
    {
      const std::lock_guard lock(journal_mutex_);
      journal_.add(variant.launches[i].entry, size);
    }
    const auto& [gx, gy, gz] = size.grid;
    const auto& [bx, by, bz] = size.block;
    check(api_,
          api_.launch(functions[i], gx, gy, gz, bx, by, bz, size.shared_bytes, compute_.handle(),
                      parameters.data(), nullptr),
          "start " + call.called);
  });
  call.values.iteration = 0;
}

void LaunchQueue::add_launches(Error& error) const {
  if (error.reason() != "DEVICE_FAULT") return;
  const std::lock_guard lock(journal_mutex_);
  if (const std::string text = journal_.text(); !text.empty()) error.add_note(text);
}

}  // namespace kiln::cuda

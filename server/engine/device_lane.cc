// What a worker needs before a call: the arenas of its tensors and the code of its kernel, each
// sent once. Loaded code is bounded: the least recently used kernel goes.
//
//   a call of k on x, y  ->  add_arenas {of x, of y} + descriptors, load_kernel {k}
#include "server/engine/device_lane.h"

#include <algorithm>

namespace kiln::server {

namespace {

constexpr size_t kKernelsInWorker = 512;
// A packet has room for this many descriptors, and one of its own.
constexpr size_t kArenasAMessage = 7;
constexpr size_t kShortMessage = 64;  // tensors and sizes of a call, of 50 bytes at most each

}  // namespace

bool DeviceLane::has_call_of(const Principal& who) const {
  const auto is_theirs = [&](const Ahead& each) {
    return each.call && each.call->work.principal() == who;
  };
  return (running && running->work.principal() == who) || std::ranges::any_of(ahead, is_theirs);
}

void DeviceLane::welcome() {
  known_arenas_.clear();
  known_kernels_.clear();
  kernel_uses_.clear();
  slot.welcome();
}

/// The descriptors travel with the messages, a few with each.
bool DeviceLane::send_arenas(std::span<const std::shared_ptr<Slice>> slices) {
  internal::ToWorker message;
  std::vector<int> fds;
  const auto flush = [&] {
    const bool is_sent = fds.empty() || slot.send(message, fds);
    message.Clear();
    fds.clear();
    return is_sent;
  };
  for (const std::shared_ptr<Slice>& slice : slices) {
    const Arena& arena = *slice->arena();
    if (!known_arenas_.insert(arena.number).second) continue;
    internal::AddArena& added = *message.mutable_add_arenas()->add_arenas();
    added.set_arena(arena.number);
    added.set_bytes(static_cast<uint64_t>(arena.bytes()));
    fds.push_back(arena.fd.get());
    if (fds.size() == kArenasAMessage && !flush()) return false;
  }
  return flush();
}

bool DeviceLane::has_kernel(const KernelEntry& kernel) {
  const auto at = kernel_uses_.find(kernel.number);
  if (at == kernel_uses_.end()) return false;
  known_kernels_.splice(known_kernels_.begin(), known_kernels_, at->second);
  return true;
}

bool DeviceLane::has_all_of(const QueuedCall& call) const {
  const auto has_arena = [&](const std::shared_ptr<Slice>& slice) {
    return known_arenas_.contains(slice->arena()->number);
  };
  return call.work.tensors.size() + call.work.bound.scalars.size() <= kShortMessage &&
         kernel_uses_.contains(call.work.kernel->number) &&
         std::ranges::all_of(call.work.tensors, has_arena);
}

internal::LoadKernel DeviceLane::load_of(const KernelEntry& kernel,
                                         std::vector<uint64_t>& unloads) {
  if (known_kernels_.size() >= kKernelsInWorker) {
    unloads.push_back(known_kernels_.back());
    kernel_uses_.erase(known_kernels_.back());
    known_kernels_.pop_back();
  }
  internal::LoadKernel load;
  load.set_kernel(kernel.number);
  load.set_artifact(kernel.compiled->bytes);
  internal::Names& names = *load.mutable_names();
  names.set_kernel(kernel.names.kernel);
  for (const std::string& name : kernel.names.parameters)
    names.add_parameters(name);
  for (const std::string& name : kernel.names.sizes)
    names.add_sizes(name);
  for (const std::string& name : kernel.names.stages)
    names.add_stages(name);
  for (const SourceLocation& line : kernel.names.lines) {
    names.add_files(line.file);
    names.add_lines(static_cast<uint32_t>(line.line));
  }
  known_kernels_.push_front(kernel.number);
  kernel_uses_[kernel.number] = known_kernels_.begin();
  return load;
}

bool DeviceLane::send_kernel(const KernelEntry& kernel) {
  if (has_kernel(kernel)) return true;
  std::vector<uint64_t> unloads;
  internal::ToWorker message;
  *message.mutable_load_kernel() = load_of(kernel, unloads);
  for (const uint64_t unload : unloads) {
    internal::ToWorker before;
    before.mutable_unload_kernel()->set_kernel(unload);
    if (!slot.send(before)) return false;
  }
  return slot.send(message);
}

/// Of all at once: a socket holds few messages for a worker that does not read.
bool DeviceLane::drop_arenas() {
  const uint64_t drops = arenas_.drops();
  if (drops == drops_seen_) return true;
  drops_seen_ = drops;
  const std::vector<uint64_t> present = arenas_.arenas();
  internal::ToWorker message;
  std::erase_if(known_arenas_, [&](uint64_t arena) {
    if (std::binary_search(present.begin(), present.end(), arena)) return false;
    message.mutable_drop_arenas()->add_arenas(arena);
    return true;
  });
  return !message.has_drop_arenas() || slot.send(message);
}

}  // namespace kiln::server

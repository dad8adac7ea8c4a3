// What a service says of itself: its devices, what it has counted, and of each part whether it
// works, with the reason where it does not.
#include <fmt/format.h>
#include <unistd.h>

#include "server/cache/disk_space.h"
#include "server/engine/engine.h"
#include "server/version.h"

namespace kiln::server {
namespace {

/// A part that works as long as there is no problem.
void add_component(v1::DescribeResponse& response, const std::string& name,
                   const std::string& problem, const std::string& when_well) {
  v1::Component& part = *response.add_components();
  part.set_name(name);
  part.set_ok(problem.empty());
  part.set_message(problem.empty() ? when_well : problem);
}

}  // namespace

v1::DescribeResponse Engine::describe() const {
  v1::DescribeResponse response;
  response.set_version(kVersion);
  response.set_boot_id(boot_id_);
  response.set_pid(static_cast<uint32_t>(::getpid()));
  for (const DeviceQueue* device : devices_.all()) {
    v1::Device described = device->describe();
    if (described.state() == "absent") continue;
    const bool is_host = described.target() == name_of(TargetKind::Llvm);
    if (const auto speed = is_host ? host_speeds_.find(host()) : std::nullopt)
      described.set_description(fmt::format("{}; {}", described.description(), text_of(*speed)));
    *response.add_devices() = std::move(described);
  }
  add_counts(response);
  add_components(response);
  return response;
}

void Engine::add_counts(v1::DescribeResponse& response) const {
  auto& counters = *response.mutable_counters();
#define COUNTER(name) counters[#name] = counters_.name.load();
  KILN_COUNTERS(COUNTER)
#undef COUNTER
  counters["disk_corrupt"] = disk_.corrupt();
  counters["disk_bytes"] = disk_.bytes();
  counters["memory_bytes"] = memory_.bytes();
  counters["tensors"] = tensors_.count();
  counters["tensor_bytes"] = arenas_->used_bytes();
  counters["sessions"] = sessions_.count();
  counters["specialised_kernels"] = specialiser_.count();
  counters["tuning_records"] = records_.count();
  counters["unfinished_jobs"] = static_cast<int64_t>(jobs_.unfinished());
  int64_t queued = 0;
  for (const DeviceQueue* device : devices_.all())
    queued += static_cast<int64_t>(device->waiting());
  counters["queued_runs"] = queued;
}

void Engine::add_components(v1::DescribeResponse& response) const {
  for (const DeviceQueue* device : devices_.all()) {
    for (const v1::Component& part : device->components())
      *response.add_components() = part;
  }
  if (compilers_.settled()) {
    const internal::Hello hello = compilers_.hello();
    for (const v1::Component& part : hello.components())
      *response.add_components() = part;
  }
  add_component(response, "tuning", records_.problem(),
                fmt::format("{} tuning records", records_.count()));
  add_component(response, "jobs", jobs_.problem(),
                fmt::format("{} unfinished jobs", jobs_.unfinished()));
  add_component(response, "cache", disk_.problem(),
                fmt::format("compiled kernels are kept in {} ({} bytes)", disk_.folder().string(),
                            disk_.bytes()));
  *response.add_components() = disk_component(disk_.folder());
  if (shared_)
    add_component(response, "shared cache", shared_->problem(), shared_->address().text());
}

}  // namespace kiln::server

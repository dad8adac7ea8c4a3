// Finds the queue of a device. The GPU with the number 0 always has one, whose worker finds out
// whether there is such a device, and how many; the others get theirs once that is known.
#include "server/engine/devices.h"

#include <algorithm>

namespace kiln::server {

Devices::Devices(MakeQueue make) : make_(std::move(make)), cpu_(make_(Role::Cpu, 0)) {
  gpus_[0] = make_(Role::Cuda, 0);
}

DeviceQueue& Devices::of(TargetKind target) const {
  return traits_of(target).is_host ? *cpu_ : gpu(0);
}

std::vector<DeviceQueue*> Devices::all() const {
  std::vector<DeviceQueue*> devices = {cpu_.get()};
  for (size_t i = 0; i < count_.load(); ++i)
    devices.push_back(gpus_[i].get());
  return devices;
}

DeviceQueue* Devices::find(const std::string& name) const {
  const std::vector<DeviceQueue*> devices = all();
  const auto at =
      std::ranges::find(devices, name, [](const DeviceQueue* device) { return device->name(); });
  return at != devices.end() ? *at : nullptr;
}

DeviceQueue& Devices::named(const std::string& name) const {
  if (name.empty() || name == "cpu") return *cpu_;
  DeviceQueue* const device = find(name == "cuda" ? "cuda:0" : name);
  if (device == nullptr) {
    fail(ErrorKind::Unavailable, "NO_DEVICE",
         "there is no device {} here; kiln devices lists those there are", name.substr(0, 80));
  }
  device->require_present();
  return *device;
}

DeviceQueue& Devices::for_call(TargetKind target, const std::string& asked,
                               std::span<const std::shared_ptr<const Tensor>> tensors,
                               const std::string& what) const {
  const std::string_view kind = traits_of(target).device;
  if (!asked.empty()) {
    DeviceQueue& device = named(asked);
    if (!device.name().starts_with(kind)) {
      fail(ErrorKind::InvalidArgument, "OTHER_TARGET",
           "{} was compiled for {}, which {} does not run", what, name_of(target), device.name());
    }
    return device;
  }
  DeviceQueue* found = nullptr;
  for (const std::shared_ptr<const Tensor>& tensor : tensors) {
    if (tensor == nullptr || !tensor->device.starts_with(kind)) continue;
    DeviceQueue* const device = find(tensor->device);
    if (device == nullptr || device == found) continue;
    if (found != nullptr) {
      fail(ErrorKind::InvalidArgument, "SEVERAL_DEVICES",
           "the arguments of {} lie on {} and {}; copy them to one device", what, found->name(),
           device->name());
    }
    found = device;
  }
  return found != nullptr ? *found : of(target);
}

void Devices::bring_home(std::vector<std::shared_ptr<Slice>> slices, FetchDone done) const {
  while (!slices.empty()) {
    const std::shared_ptr<Slice> slice = std::move(slices.back());
    slices.pop_back();
    const std::shared_ptr<DeviceCopy> copy = slice->copy();
    if (copy == nullptr || !copy->is_newer) continue;
    if (copy->is_lost) return done(tensor_lost(copy->device));
    DeviceQueue* const device = find(copy->device);
    KILN_CHECK(device != nullptr);
    device->fetch(slice, [this, slices = std::move(slices),
                          done = std::move(done)](Outcome<std::monostate> outcome) mutable {
      if (std::holds_alternative<Error>(outcome)) return done(std::move(outcome));
      bring_home(std::move(slices), std::move(done));
    });
    return;
  }
  done(std::monostate{});
}

void Devices::tick(Clock::time_point now) {
  const size_t wanted = std::min(kMostGpus, std::max<size_t>(gpu(0).kind_count(), 1));
  for (size_t i = count_.load(); i < wanted; ++i) {
    gpus_[i] = make_(Role::Cuda, static_cast<int>(i));
    count_.store(i + 1);
  }
  for (DeviceQueue* device : all())
    device->tick(now);
}

void Devices::stop() {
  for (DeviceQueue* device : all())
    device->stop();
}

}  // namespace kiln::server

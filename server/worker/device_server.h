#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kiln/internal/worker.pb.h"
#include "runtime/device.h"
#include "server/ipc/fd.h"
#include "server/ipc/memfd.h"
#include "server/ipc/status_page.h"
#include "server/worker/resident_tensors.h"

namespace kiln::server {

/// One device with what the front end made known to it.
class DeviceServer {
 public:
  DeviceServer(Device& device, StatusPage& status, ResidentTensors::Answer answer)
      : device_(device), status_(status) {
    if (!is_host()) residents_.emplace(device, std::move(answer));
  }

  void add_arenas(const internal::AddArenas& message, const std::vector<Fd>& fds);
  void drop_arenas(const internal::DropArenas& message);
  // One at a time.
  void load(const internal::LoadKernel& message);
  void unload(uint64_t kernel) { kernels_.erase(kernel); }
  internal::Done exec(const internal::Exec& message);
  internal::Done exec(const internal::ExecProgram& message);
  // While a call runs, too.
  void stage(const internal::Stage& message);
  void fetch(const internal::Fetch& message);
  void drop_tensors(const internal::DropTensors& message) {
    for (const uint64_t resident : message.residents())
      residents().drop(resident);
  }

 private:
  struct Kernel {
    KernelNames names;
    std::shared_ptr<LoadedKernel> loaded;
    std::optional<Error> failed;  // why it could not be loaded
  };

  const Kernel& kernel(uint64_t number) const;
  /// An argument where the device works on it.
  struct Operand {
    std::shared_ptr<DeviceBuffer> buffer;  // null: the host's memory
    uint8_t* host = nullptr;
    int64_t bytes = 0;
    void* pointer() const { return buffer ? buffer->data() : host; }
  };

  bool is_host() const { return traits_of(device_.target()).is_host; }
  ResidentTensors& residents() {
    KILN_CHECK(residents_.has_value());
    return *residents_;
  }
  HostPlace host_place(const internal::Place& place, int64_t bytes) const;
  uint8_t* host_pointer(const internal::Place& place, int64_t bytes) const {
    return host_place(place, bytes).data;  // what a call uses stays until it is over
  }
  Operand place(const internal::Place& place, const Parameter& parameter);
  /// The slot of a call, which is begun from now on. Throws Cancelled where it was taken back.
  CallSlot& begin(uint32_t slot);
  void run(const Kernel& kernel, const internal::Exec& message,
           const std::atomic<int32_t>& cancelled, internal::Done& done);
  void measure(const Kernel& kernel, const KernelCall& call, const internal::Exec& message,
               internal::Done& done);

  Device& device_;
  StatusPage& status_;
  mutable std::mutex arenas_mutex_;
  std::map<uint64_t, std::shared_ptr<const Mapping>> arenas_;
  std::map<uint64_t, Kernel> kernels_;
  std::optional<ResidentTensors> residents_;  // of a device with memory of its own
};

}  // namespace kiln::server

#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/core/arguments.h"
#include "server/cache/artifact_cache.h"
#include "server/quotas.h"

namespace kiln::server {

/// A compiled kernel as one caller knows it: the artifact, which others may share, and own names.
struct KernelEntry {
  std::string id;      // the artifact key, then a hash of the names
  std::string tenant;  // that asked for it first
  std::string key;
  uint64_t number = 0;  // what workers know it by
  std::shared_ptr<const CachedArtifact> compiled;
  KernelNames names;
  std::string request;  // the v1.CompileRequest with its arch filled in, for Inspect
  std::string note;     // where its schedule is from, when not from the request; a sentence

  const Artifact& artifact() const { return *compiled->artifact; }
};

/// The kernels that clients can name, the last used ones up to a number and to the bytes that they
/// keep in memory, artifacts included. One that fell out is NotFound, and
/// clients compile it again. Who asks for many pushes out its own first.
class KernelTable {
 public:
  struct Limits {
    size_t kernels = 4096;
    SharedQuotas quotas = shared_quotas({});
    int64_t bytes = int64_t{256} << 20;
  };
  explicit KernelTable(Limits limits) : limits_(std::move(limits)) {}

  /// Throws NotFound KERNEL.
  std::shared_ptr<const KernelEntry> get(const std::string& id);
  std::shared_ptr<const KernelEntry> find(const std::string& id);
  /// Stores `entry` with a number of its own, or returns the equal one that is there.
  std::shared_ptr<const KernelEntry> put(KernelEntry entry);
  /// Gives `entry` a number of its own, but no client can name it.
  std::shared_ptr<const KernelEntry> number(KernelEntry entry);

 private:
  struct Slot {
    std::shared_ptr<const KernelEntry> entry;
    std::list<std::string>::iterator use;
  };
  static int64_t cost_of(const KernelEntry& entry);
  void erase(const std::string& id);
  void make_room_for(const KernelEntry& entry);

  const Limits limits_;
  std::mutex mutex_;
  uint64_t next_number_ = 1;
  int64_t bytes_ = 0;
  std::list<std::string> uses_;                     // ids, last used first
  std::unordered_map<std::string, size_t> counts_;  // by tenant
  std::unordered_map<std::string, Slot> slots_;
};

}  // namespace kiln::server

#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/arguments.h"
#include "server/counters.h"
#include "server/engine/compiler_pool.h"
#include "server/engine/kernel_table.h"

namespace kiln::server {

/// Variants of kernels for sizes that come back: compiled in the background, when no compiler has
/// anything else to do, and used from then on. A variant has the steps of its kernel, so that it
/// computes the same bits, and constants where the kernel has sizes.
///
/// Any thread may use it; nothing of it waits.
class Specialiser {
 public:
  struct Options {
    size_t kernels = 64;    // variants that are kept, the last used ones; 0: none are made
    int64_t calls = 32;     // with the same sizes, before a variant is worth compiling
    double seconds = 0.5;   // likewise, of two calls or more
    size_t watched = 4096;  // sizes that are counted
  };
  Specialiser(const Options& options, CompilerPool& compilers, KernelTable& kernels,
              Counters& counters)
      : options_(options), compilers_(compilers), kernels_(kernels), counters_(counters) {}

  /// What runs instead of `kernel` for these sizes, with the number of its variant in
  /// `call.variant`; `kernel` itself when there is nothing.
  std::shared_ptr<const KernelEntry> choose(const std::shared_ptr<const KernelEntry>& kernel,
                                            BoundCall& call);
  /// So many runs of `kernel` ended, which took so long together. `scalars` are those of the call.
  void note(const std::shared_ptr<const KernelEntry>& kernel, const std::vector<int64_t>& scalars,
            int64_t runs, double seconds);

  /// The sizes that a kernel has variants for, as reports show them: "n=512, m=64".
  std::vector<std::string> sizes_of(const KernelEntry& kernel) const;
  int64_t count() const;

 private:
  using Key = std::pair<uint64_t, std::vector<int64_t>>;  // a kernel's number, its sizes
  struct Watched {
    int64_t calls = 0;
    double seconds = 0;
    bool asked_for = false;                      // being compiled, or it failed
    std::shared_ptr<const KernelEntry> variant;  // null: none yet
    std::list<Key>::iterator use;
  };
  using Watch = std::map<Key, Watched>;

  static std::optional<Key> key_of(const KernelEntry& kernel, const std::vector<int64_t>& scalars);
  // With the lock held.
  Watched& watched(const Key& key);
  void touch(Watched& watched);
  void drop_variants();

  void compile(const std::shared_ptr<const KernelEntry>& kernel, const Key& key);
  void take(const std::shared_ptr<const KernelEntry>& kernel, const Key& key,
            internal::FromWorker& reply);

  const Options options_;
  CompilerPool& compilers_;
  KernelTable& kernels_;
  Counters& counters_;
  mutable std::mutex mutex_;
  bool compiling_ = false;
  size_t variants_ = 0;
  std::list<Key> uses_;  // last used first
  Watch watch_;
};

}  // namespace kiln::server

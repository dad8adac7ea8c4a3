// Keeps a few generators of LLVM between compiles, by CPU and strictness. They are lent, not
// shared: LLVM's target machines and pass managers serve one thread at a time.
#include "compiler/codegen/llvm_generator.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm_target.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// As many as compile at the same time, about; each takes a megabyte or two.
constexpr size_t kKept = 4;

struct Key {
  std::string arch;
  bool strict;
  bool operator==(const Key&) const = default;
};

Key key_of(const CpuOptions& options) { return {options.arch, options.strict}; }

/// Nothing that a compile could see: what is made is the same with an old generator and a new one.
struct Kept {
  std::mutex mutex;
  std::vector<std::pair<Key, std::unique_ptr<ObjectGenerator>>> generators;  // last used last
};

/// Never destroyed, since LLVM's own globals may go first.
Kept& kept() {
  static Kept* const kept = new Kept;
  return *kept;
}

}  // namespace

ObjectGenerator::ObjectGenerator(const CpuOptions& options)
    : machine_(make_target_machine(options)), lane_access_(lane_access_of(*machine_)) {
  const bool refused =
      machine_->addPassesToEmitFile(passes_, stream_, nullptr, llvm::CodeGenFileType::ObjectFile,
                                    /*DisableVerify=*/true);
  KILN_CHECK(!refused);
}

std::string ObjectGenerator::generate(llvm::Module& module) {
  bytes_.clear();
  passes_.run(module);
  return {bytes_.begin(), bytes_.end()};
}

std::unique_ptr<ObjectGenerator> take_generator(const CpuOptions& options) {
  Kept& all = kept();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = std::find_if(
        all.generators.rbegin(), all.generators.rend(),
        [key = key_of(options)](const auto& generator) { return generator.first == key; });
    if (found != all.generators.rend()) {
      std::unique_ptr<ObjectGenerator> taken = std::move(found->second);
      all.generators.erase(std::next(found).base());
      return taken;
    }
  }
  return std::make_unique<ObjectGenerator>(options);
}

// What is dropped is destroyed after the lock: that takes as long as making it.
void give_back(const CpuOptions& options, std::unique_ptr<ObjectGenerator> generator) {
  std::unique_ptr<ObjectGenerator> dropped;
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  all.generators.emplace_back(key_of(options), std::move(generator));
  if (all.generators.size() <= kKept) return;
  dropped = std::move(all.generators.front().second);
  all.generators.erase(all.generators.begin());
}

}  // namespace kiln::codegen

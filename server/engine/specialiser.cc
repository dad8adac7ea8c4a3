// Watches which sizes come back and compiles a variant for them while a compiler is idle: constants
// for sizes, the same steps, so the same bits. As a tiered just-in-time compiler counts calls
// before it optimises (HotSpot, V8), but for sizes.
//
//   matmul of any n, called 32 times with n = 512  ->  a variant for n=512 serves the 33rd
#include "server/engine/specialiser.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace kiln::server {

std::optional<Specialiser::Key> Specialiser::key_of(const KernelEntry& kernel,
                                                    const std::vector<int64_t>& scalars) {
  const auto sizes = static_cast<size_t>(kernel.artifact().size_count);
  if (sizes == 0 || !traits_of(kernel.artifact().target).is_specialised) return std::nullopt;
  return Key{kernel.number, {scalars.begin(), scalars.begin() + static_cast<int64_t>(sizes)}};
}

Specialiser::Watched& Specialiser::watched(const Key& key) {
  const auto [at, is_new] = watch_.try_emplace(key);
  if (is_new) {
    uses_.push_front(key);
    at->second.use = uses_.begin();
    if (watch_.size() > options_.watched) {
      const auto oldest = watch_.find(uses_.back());
      if (oldest->second.variant) --variants_;
      watch_.erase(oldest);
      uses_.pop_back();
    }
  }
  return at->second;
}

void Specialiser::touch(Watched& watched) { uses_.splice(uses_.begin(), uses_, watched.use); }

void Specialiser::drop_variants() {
  for (auto key = uses_.rbegin(); key != uses_.rend() && variants_ > options_.kernels; ++key) {
    Watched& watched = watch_.at(*key);
    if (!watched.variant) continue;
    // To be earned again, not compiled at the next call.
    watched.variant = nullptr;
    watched.asked_for = false;
    watched.calls = 0;
    watched.seconds = 0;
    --variants_;
    counters_.dropped_variants.fetch_add(1);
  }
}

std::shared_ptr<const KernelEntry> Specialiser::choose(
    const std::shared_ptr<const KernelEntry>& kernel, BoundCall& call) {
  if (options_.kernels == 0) return kernel;
  const std::optional<Key> key = key_of(*kernel, call.scalars);
  if (!key) return kernel;
  std::shared_ptr<const KernelEntry> variant;
  {
    const std::lock_guard lock(mutex_);
    const auto at = watch_.find(*key);
    if (at == watch_.end()) return kernel;
    touch(at->second);
    variant = at->second.variant;
  }
  if (!variant) return kernel;
  const std::vector<Variant>& variants = variant->artifact().variants;
  const auto holds = std::find_if(variants.begin(), variants.end(), [&](const Variant& each) {
    return each.condition.evaluate(call.scalars) != 0;
  });
  if (holds == variants.end()) return kernel;
  call.variant = static_cast<int>(holds - variants.begin());
  counters_.specialised_runs.fetch_add(1);
  return variant;
}

void Specialiser::note(const std::shared_ptr<const KernelEntry>& kernel,
                       const std::vector<int64_t>& scalars, int64_t runs, double seconds) {
  if (options_.kernels == 0) return;
  const std::optional<Key> key = key_of(*kernel, scalars);
  if (!key) return;
  {
    const std::lock_guard lock(mutex_);
    Watched& own = watched(*key);
    own.calls += runs;
    own.seconds += seconds;
    const bool is_worth_it =
        own.calls >= options_.calls || (own.calls >= 2 && own.seconds >= options_.seconds);
    // One at a time and only while a compiler is idle: nobody waits longer for a variant of
    // another's.
    if (own.asked_for || !is_worth_it || compiling_ || !compilers_.idle()) return;
    own.asked_for = true;
    compiling_ = true;
  }
  compile(kernel, *key);
}

void Specialiser::compile(const std::shared_ptr<const KernelEntry>& kernel, const Key& key) {
  CompilerTask task;
  internal::Compile& message = *task.message.mutable_compile();
  KILN_CHECK(message.mutable_request()->ParseFromString(kernel->request));
  message.mutable_sizes()->Add(key.second.begin(), key.second.end());
  task.kernel = kernel->names.kernel;
  task.key = fmt::format("{} for {}", kernel->key, fmt::join(key.second, ","));
  task.caller.priority = Priority::Low;
  task.wanted = [] { return true; };
  task.done = [this, kernel, key](Outcome<internal::FromWorker> outcome) {
    // One that fails is not asked for again: the kernel itself serves these sizes.
    {
      // Before the variant is counted: who sees it may ask for the next.
      const std::lock_guard lock(mutex_);
      compiling_ = false;
    }
    if (auto* reply = std::get_if<internal::FromWorker>(&outcome)) take(kernel, key, *reply);
  };
  try {
    compilers_.submit(std::move(task));
  } catch (const Error&) {
    const std::lock_guard lock(mutex_);
    compiling_ = false;
    watched(key).asked_for = false;
  }
}

void Specialiser::take(const std::shared_ptr<const KernelEntry>& kernel, const Key& key,
                       internal::FromWorker& reply) {
  try {
    KernelEntry entry;
    entry.key = fmt::format("{} for {}", kernel->key, fmt::join(key.second, ","));
    entry.compiled = cached_artifact("", std::move(*reply.mutable_compiled()->mutable_artifact()));
    entry.names = kernel->names;
    const std::shared_ptr<const KernelEntry> variant = kernels_.number(std::move(entry));
    const std::lock_guard lock(mutex_);
    Watched& own = watched(key);
    own.variant = variant;
    touch(own);
    ++variants_;
    drop_variants();
    counters_.specialisations.fetch_add(1);
  } catch (...) {
    current_error();  // logged; the kernel itself goes on serving
  }
}

std::vector<std::string> Specialiser::sizes_of(const KernelEntry& kernel) const {
  std::vector<std::string> found;
  const std::lock_guard lock(mutex_);
  for (auto at = watch_.lower_bound({kernel.number, {}});
       at != watch_.end() && at->first.first == kernel.number; ++at) {
    if (!at->second.variant) continue;
    std::vector<std::string> sizes;
    for (size_t i = 0; i < at->first.second.size(); ++i)
      sizes.push_back(fmt::format("{}={}", kernel.names.sizes[i], at->first.second[i]));
    found.push_back(fmt::format("{}", fmt::join(sizes, ", ")));
  }
  return found;
}

int64_t Specialiser::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(variants_);
}

}  // namespace kiln::server

// First fit in arenas, the oldest first, with free parts joined when they meet. Arenas that are
// empty stay warm up to a limit.
//
//   allocate 1 MiB, 2 MiB; free the first; allocate 0.5 MiB  ->  the gap at 0
#include "server/tensors/arena_pool.h"

#include <algorithm>

#include "runtime/core/error.h"
#include "runtime/cpu/cpu_topology.h"

namespace kiln::server {

namespace {

// A line of the cache and a register of AVX-512.
constexpr int64_t kAlignment = 64;
constexpr int64_t kPage = 4096;

int64_t rounded_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(uint64_t number, int64_t bytes)
    : number(number), fd(make_memfd("kiln-arena", bytes)), mapping(fd, bytes) {}

Arena::Arena(uint64_t number, Fd sealed, int64_t bytes)
    : number(number), fd(std::move(sealed)), mapping(fd, bytes), frozen(true) {}

Slice::Slice(std::shared_ptr<ArenaPool> pool, std::shared_ptr<const Arena> arena, int64_t offset,
             int64_t bytes)
    : pool_(std::move(pool)), arena_(std::move(arena)), offset_(offset), bytes_(bytes) {}

Slice::~Slice() { pool_->give_back(*arena_, offset_, bytes_); }

void Slice::written() {
  version_.fetch_add(1);
  if (const std::shared_ptr<DeviceCopy> known = copy()) known->is_newer = false;
}

std::shared_ptr<DeviceCopy> Slice::copy() const {
  const std::lock_guard lock(mutex_);
  return copy_;
}

void Slice::set_copy(std::shared_ptr<DeviceCopy> copy) {
  const std::lock_guard lock(mutex_);
  copy_.swap(copy);
}

std::shared_ptr<Slice> ArenaPool::allocate(int64_t bytes) {
  std::shared_ptr<Slice> slice = reserve(bytes);
  use(*slice, 0, slice->bytes());
  return slice;
}

void ArenaPool::use(const Slice& slice, int64_t offset, int64_t bytes) {
  if (slice.bytes() < kHugePage || bytes == 0) return;
  const Mapping& mapping = slice.arena()->mapping;
  const auto pages_until = [&](int64_t byte) {
    return std::min((byte + kHugePage - 1) / kHugePage, mapping.bytes() / kHugePage);
  };
  const int64_t begin = slice.offset() + offset;
  const int64_t first = begin / kHugePage;
  const int64_t end = pages_until(begin + bytes);
  if (first >= end || !is_first_use(slice.arena()->number, first, end)) return;
  const auto nodes = static_cast<int>(options_.nodes.size());
  if (nodes < 2) return mapping.use_huge_pages(first, end - first);
  const int64_t origin = slice.offset() / kHugePage;
  const int64_t pages = pages_until(slice.offset() + slice.bytes()) - origin;
  for (const NodePages& part : pages_by_node(first - origin, end - origin, pages, nodes)) {
    const OnCpus here(options_.nodes[static_cast<size_t>(part.node)]);
    mapping.use_huge_pages(origin + part.first, part.count);
  }
}

bool ArenaPool::is_first_use(uint64_t arena, int64_t first, int64_t end) {
  const std::lock_guard lock(mutex_);
  std::vector<bool>& huge = holdings_.at(arena).huge;
  huge.resize(std::max(huge.size(), static_cast<size_t>(end)));
  // Collapsing pages takes time for each 2 MiB, so it is asked for once.
  bool is_first = false;
  for (auto page = static_cast<size_t>(first); page < static_cast<size_t>(end); ++page) {
    is_first = is_first || !huge[page];
    huge[page] = true;
  }
  return is_first;
}

std::shared_ptr<Slice> ArenaPool::reserve(int64_t bytes) {
  KILN_CHECK(bytes >= 0);
  const std::lock_guard lock(mutex_);
  require_room(bytes);
  // An empty tensor has an address too.
  const int64_t size = rounded_up(std::max<int64_t>(bytes, 1), kAlignment);

  Holding* chosen = nullptr;
  std::map<int64_t, int64_t>::iterator gap;
  for (auto& [number, holding] : holdings_) {
    const auto fits = std::find_if(holding.free.begin(), holding.free.end(),
                                   [&](const auto& part) { return part.second >= size; });
    // An arena made for one large tensor is not worth keeping alive for a small one.
    const bool wasteful = holding.arena->bytes() > options_.arena_bytes && holding.used == 0 &&
                          size < holding.arena->bytes() / 2;
    const bool is_shared = holding.owner.empty() && !holding.arena->is_frozen();
    if (fits == holding.free.end() || wasteful || !is_shared) continue;
    chosen = &holding;
    gap = fits;
    break;
  }
  if (chosen == nullptr) {
    const int64_t page = size < kHugePage ? kPage : kHugePage;
    const int64_t arena_bytes = rounded_up(std::max(size, options_.arena_bytes), page);
    chosen = &add_arena(std::make_shared<const Arena>(next_arena_, arena_bytes));
    gap = chosen->free.begin();
  }
  return take(*chosen, gap->first, size);
}

void ArenaPool::require_room(int64_t bytes) const {
  if (bytes <= options_.limit_bytes - used_) return;
  // What never fits is not worth a second attempt.
  if (bytes > options_.limit_bytes) {
    fail(ErrorKind::ResourceExhausted, "TENSOR_LIMIT",
         "{} bytes of tensor memory are needed, but the service keeps at most {}", bytes,
         options_.limit_bytes);
  }
  fail(ErrorKind::ResourceExhausted, "TENSOR_MEMORY",
       "{} bytes of tensor memory are needed, but only {} of {} are free", bytes,
       options_.limit_bytes - used_, options_.limit_bytes);
}

ArenaPool::Holding& ArenaPool::add_arena(std::shared_ptr<const Arena> arena) {
  Holding& holding = holdings_[next_arena_++];
  holding.free.emplace(0, arena->bytes());
  holding.arena = std::move(arena);
  return holding;
}

/// The first `size` bytes of the free part at `offset`.
std::shared_ptr<Slice> ArenaPool::take(Holding& holding, int64_t offset, int64_t size) {
  auto slice = std::make_shared<Slice>(shared_from_this(), holding.arena, offset, size);
  // The slice is made first: what throws leaves the gap as it is.
  const auto gap = holding.free.find(offset);
  const int64_t available = gap->second;
  holding.free.erase(gap);
  if (available > size) holding.free.emplace(offset + size, available - size);
  holding.used += size;
  used_ += size;
  return slice;
}

ArenaPool::Holding* ArenaPool::find_unused(const std::string& owner, int64_t arena_bytes) {
  for (auto& [number, holding] : holdings_) {
    if (holding.used == 0 && holding.owner == owner && holding.arena->bytes() == arena_bytes) {
      return &holding;
    }
  }
  return nullptr;
}

std::shared_ptr<Slice> ArenaPool::allocate_for(const std::string& owner, int64_t bytes) {
  std::shared_ptr<Slice> slice = reserve_for(owner, bytes);
  use(*slice, 0, slice->bytes());
  return slice;
}

std::shared_ptr<Slice> ArenaPool::reserve_for(const std::string& owner, int64_t bytes) {
  KILN_CHECK(bytes > 0 && !owner.empty());
  const std::lock_guard lock(mutex_);
  require_room(bytes);
  // As large as it has to be, so that what is shown of it is the tensor alone.
  const int64_t size = rounded_up(bytes, kPage);
  Holding* holding = find_unused(owner, size);
  if (holding == nullptr) {
    holding = &add_arena(std::make_shared<const Arena>(next_arena_, size));
    holding->owner = owner;
  }
  return take(*holding, 0, size);
}

std::shared_ptr<Slice> ArenaPool::adopt(Fd sealed, int64_t bytes) {
  KILN_CHECK(bytes > 0 && is_sealed_memory(sealed, bytes));
  const std::lock_guard lock(mutex_);
  require_room(bytes);
  return take(add_arena(std::make_shared<const Arena>(next_arena_, std::move(sealed), bytes)), 0,
              bytes);
}

bool ArenaPool::freeze(const Slice& slice, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const Arena& arena = *slice.arena();
  if (owner.empty() || holdings_.at(arena.number).owner != owner) return false;
  if (!arena.frozen.exchange(true)) seal_against_new_writers(arena.fd);
  return true;
}

void ArenaPool::forget_owner(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, holding] : holdings_) {
    if (holding.owner == owner) holding.owner.clear();
  }
}

void ArenaPool::cool_down() {
  const std::lock_guard lock(mutex_);
  drop_cold_arenas(0);
}

void ArenaPool::give_back(const Arena& arena, int64_t offset, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Holding& holding = holdings_.at(arena.number);
  auto [part, inserted] = holding.free.emplace(offset, bytes);
  const auto next = std::next(part);
  if (next != holding.free.end() && next->first == offset + bytes) {
    part->second += next->second;
    holding.free.erase(next);
  }
  if (part != holding.free.begin()) {
    const auto before = std::prev(part);
    if (before->first + before->second == offset) {
      before->second += part->second;
      holding.free.erase(part);
    }
  }
  holding.used -= bytes;
  used_ -= bytes;
  if (holding.used != 0) return;
  if (arena.is_frozen()) {
    holdings_.erase(arena.number);
    drops_.fetch_add(1);
  } else {
    drop_cold_arenas(options_.warm_bytes);
  }
}

void ArenaPool::drop_cold_arenas(int64_t warm_bytes) {
  int64_t warm = 0;
  for (const auto& [number, holding] : holdings_) {
    if (holding.used == 0) warm += holding.arena->bytes();
  }
  for (auto at = holdings_.begin(); at != holdings_.end() && warm > warm_bytes;) {
    if (at->second.used == 0) {
      warm -= at->second.arena->bytes();
      at = holdings_.erase(at);
      drops_.fetch_add(1);
    } else {
      ++at;
    }
  }
}

int64_t ArenaPool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::vector<uint64_t> ArenaPool::arenas() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, holding] : holdings_)
    numbers.push_back(number);
  return numbers;
}

}  // namespace kiln::server

// First fit in arenas, the oldest first, with free parts joined when they meet. Arenas that are
// empty stay warm up to a limit.
//
//   allocate 1 MiB, 2 MiB; free the first; allocate 0.5 MiB  ->  the gap at 0
#include "server/tensors/arena_pool.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

// A line of the cache and a register of AVX-512.
constexpr int64_t kAlignment = 64;

int64_t rounded_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(uint64_t number, int64_t bytes)
    : number(number), fd(make_memfd("kiln-arena", bytes)), mapping(fd, bytes) {}

Slice::Slice(std::shared_ptr<ArenaPool> pool, std::shared_ptr<const Arena> arena, int64_t offset,
             int64_t bytes)
    : pool_(std::move(pool)), arena_(std::move(arena)), offset_(offset), bytes_(bytes) {}

Slice::~Slice() { pool_->give_back(*arena_, offset_, bytes_); }

std::shared_ptr<Slice> ArenaPool::allocate(int64_t bytes) {
  std::shared_ptr<Slice> slice = reserve(bytes);
  use(*slice, 0, slice->bytes());
  return slice;
}

void ArenaPool::use(const Slice& slice, int64_t offset, int64_t bytes) {
  if (slice.bytes() < kHugePage || bytes == 0) return;
  const Mapping& mapping = slice.arena()->mapping;
  const int64_t begin = slice.offset() + offset;
  const int64_t first = begin / kHugePage;
  const int64_t end =
      std::min((begin + bytes + kHugePage - 1) / kHugePage, mapping.bytes() / kHugePage);
  if (first < end && is_first_use(slice.arena()->number, first, end)) {
    mapping.use_huge_pages(first, end - first);
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
  if (bytes > options_.limit_bytes - used_) {
    fail(ErrorKind::ResourceExhausted, "TENSOR_MEMORY",
         "{} bytes of tensor memory are needed, but only {} of {} are free", bytes,
         options_.limit_bytes - used_, options_.limit_bytes);
  }
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
    if (fits == holding.free.end() || wasteful) continue;
    chosen = &holding;
    gap = fits;
    break;
  }
  if (chosen == nullptr) {
    const int64_t page = size < kHugePage ? int64_t{4096} : kHugePage;
    const int64_t arena_bytes = rounded_up(std::max(size, options_.arena_bytes), page);
    auto arena = std::make_shared<const Arena>(next_arena_, arena_bytes);
    chosen = &holdings_[next_arena_++];
    chosen->arena = std::move(arena);
    gap = chosen->free.emplace(0, arena_bytes).first;
  }

  const auto [offset, available] = *gap;
  auto slice = std::make_shared<Slice>(shared_from_this(), chosen->arena, offset, size);
  // The slice is made first: what throws leaves the gap as it is.
  chosen->free.erase(gap);
  if (available > size) chosen->free.emplace(offset + size, available - size);
  chosen->used += size;
  used_ += size;
  return slice;
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
  if (holding.used == 0) drop_cold_arenas();
}

void ArenaPool::drop_cold_arenas() {
  int64_t warm = 0;
  for (const auto& [number, holding] : holdings_) {
    if (holding.used == 0) warm += holding.arena->bytes();
  }
  for (auto at = holdings_.begin(); at != holdings_.end() && warm > options_.warm_bytes;) {
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

// Electric Fence for arguments: pages without rights before and behind each, and a handler of
// SIGSEGV that says which argument was left and how far.
#include "tests/support/guarded_memory.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/error.h"

namespace kiln::testing {
namespace {

/// What the signal handler looks through. A slot is taken by its `begin`.
struct Region {
  std::atomic<const std::byte*> begin = nullptr;  // of all pages, guards too
  const std::byte* end = nullptr;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  const char* name = nullptr;
};

std::array<Region, 256> regions;

/// What was to be done before there was guarded memory.
struct sigaction other_action = {};

size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

/// The loads and stores of compiled code come here when they leave their argument. The process ends
/// anyway, so that telling GoogleTest, which prints what was being tried, can do no harm.
void explain(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (const Region& region : regions) {
    const std::byte* begin = region.begin.load();
    if (begin == nullptr || address < begin || address >= region.end) continue;
    const bool before = address < region.data;
    const auto past = address - (region.data + region.bytes) + 1;
    std::fprintf(stderr, "compiled code touched memory %td bytes %s of %s, which has %zu\n",
                 before ? region.data - address : past,
                 before ? "before the start" : "past the end", region.name, region.bytes);
    ADD_FAILURE() << "outside of " << region.name;
    std::fflush(nullptr);
    ::_exit(1);
  }
  // The access is tried again, and is another's to explain.
  ::sigaction(SIGSEGV, &other_action, nullptr);
}

void install_handler() {
  static const bool done = [] {
    struct sigaction action = {};
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGSEGV, &action, &other_action) == 0;
  }();
  KILN_CHECK(done);
}

size_t take_slot(const std::byte* begin) {
  for (size_t slot = 0; slot < regions.size(); ++slot) {
    const std::byte* expected = nullptr;
    if (regions[slot].begin.compare_exchange_strong(expected, begin)) return slot;
  }
  fail(ErrorKind::ResourceExhausted, "GUARDED_MEMORY", "more than {} guarded arguments at once",
       regions.size());
}

}  // namespace

GuardedMemory::GuardedMemory(const std::string& name, size_t bytes, Edge edge) : bytes_(bytes) {
  install_handler();
  const size_t page = page_size();
  const size_t used = (bytes + page - 1) / page * page;
  page_bytes_ = used + 2 * page;
  void* pages = ::mmap(nullptr, page_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KILN_CHECK(pages != MAP_FAILED);
  pages_ = static_cast<std::byte*>(pages);
  if (used > 0) KILN_CHECK(::mprotect(pages_ + page, used, PROT_READ | PROT_WRITE) == 0);
  data_ = edge == Edge::Begin ? pages_ + page : pages_ + page + used - bytes;
  slot_ = take_slot(pages_);
  Region& region = regions[slot_];
  region.end = pages_ + page_bytes_;
  region.data = data_;
  region.bytes = bytes;
  region.name = ::strdup(name.c_str());
}

GuardedMemory::~GuardedMemory() {
  Region& region = regions[slot_];
  std::free(const_cast<char*>(region.name));
  region.begin = nullptr;
  ::munmap(pages_, page_bytes_);
}

}  // namespace kiln::testing

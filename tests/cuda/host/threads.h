// What CUDA C that was compiled for the host asks of the library that runs it. Plain C, since
// kernels are shared objects of their own. Nothing here may be inlined into them as watched code.
#pragma once

#include <cstdint>

extern "C" {

struct KilnHostLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};
struct KilnHostKernel {
  int parameters;
  int (*run)(const KilnHostLaunch& launch, void** parameters);
  bool is_endless = false;
};

struct KilnHostThread {
  unsigned index[3];
};
struct KilnHostBlock {
  unsigned index[3];
  unsigned threads[3];
  unsigned grid[3];
};

/// The thread that runs, and its block.
const KilnHostThread* kiln_thread();
const KilnHostBlock* kiln_block();
int kiln_lane();

/// Waits for all threads of the block that have not ended.
void kiln_meet_block();
/// Waits for the lanes of `mask`, and gives what each of the 32 brought.
const uint64_t* kiln_meet_warp(unsigned mask, uint64_t value);
/// Copies in the background: bytes that are poison until the thread has awaited the group they are
/// in; zeros where they come from nowhere (null). Groups end one after the other; all but the last
/// `groups` have arrived after that.
void kiln_begin_copy(void* to, const void* from, unsigned bytes);
void kiln_end_copies();
void kiln_await_copies(unsigned groups);
void kiln_note_atomic(void* address, unsigned bytes, void* where);

/// Runs all threads of all blocks. The result of a driver's function.
int kiln_run_grid(const KilnHostLaunch& launch, void (*kernel)(void**), void** parameters,
                  char* shared_begin, char* shared_end);

// Of the linker: where this object's shared memory lies; null where it has none.
extern char __start_kiln_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_kiln_shared[] __attribute__((weak, visibility("hidden")));
}

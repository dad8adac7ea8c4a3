#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Watches what threads of a launch read and write: every access of watched code comes here.
namespace kiln::host {

/// A range that kernels may use, with a name for reports. What is written before the launch counts
/// as written.
void add_memory(uint64_t begin, uint64_t bytes);
void remove_memory(uint64_t begin);
/// The host or a copy writes it.
void note_written(uint64_t begin, uint64_t bytes);

void begin_launch(const char* shared_begin, const char* shared_end);
void begin_block(uint64_t number);
/// All threads of the block have met; or those of a warp.
void met_block();
void met_warp(unsigned warp);
/// The stacks of the threads, whose variables are their own.
void own_memory(const char* begin, size_t bytes);

/// The thread that runs has begun to write these bytes: nobody may use them until it has written
/// them.
void begin_write(void* to, uint64_t bytes);
/// It reads, or writes.
void note_read(const void* from, uint64_t bytes);
void note_write(const void* to, uint64_t bytes);

/// The first violation of the launch: "thread 3 of block (0, 0, 0) reads ... ". Empty: none.
const std::string& violation();
/// Notes one, unless there is one.
void violate(const std::string& what);

}  // namespace kiln::host

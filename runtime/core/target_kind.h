#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln {

/// What an artifact is for. The interpreter runs loops as they are written, slowly, on the CPU.
enum class TargetKind : uint8_t { Llvm = 1, Cuda = 2, Interpreter = 3 };

/// What a kind of target can do and what it calls things. Whoever has to know asks for one of
/// these, never for the kind, so that another kind of target is another row.
struct TargetTraits {
  TargetKind kind;
  std::string_view name;          // "llvm"
  std::string_view device;        // "cpu": its devices are cpu:0, cpu:1 ..
  std::string_view arch;          // planned for where no device says another; empty: the host's
  std::string_view arch_example;  // empty: it has none
  bool is_compiled;               // else its artifacts are loops, run as they are written
  bool is_host;                   // runs on the CPU of the host, in the memory of the host
  bool has_threads;     // bound loops are threads that run at once, share memory, meet at barriers
  bool has_vectors;     // lanes, prefetches and tensor intrinsics are instructions
  bool is_specialised;  // sizes that come back get variants of their own
};

std::span<const TargetTraits> target_table();
const TargetTraits& traits_of(TargetKind kind);

/// "llvm", "cuda", "interpreter".
std::string_view name_of(TargetKind kind);

/// The target of a name; "cpu" is another name for "llvm". Throws InvalidArgument TARGET listing
/// the known ones.
TargetKind target_from_name(std::string_view name);

}  // namespace kiln

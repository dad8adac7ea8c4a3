#pragma once

#include <cstdint>

/// The calling convention between generated code and the runtime. Plain C: generated CPU code reads
/// and writes the fields by their offsets (compiler/codegen/llvm_function.cc), so a change here is
/// a change of the artifact version.
extern "C" {

struct KilnFrame;

/// A part of a parallel loop: iterations begin .. end - 1, run by thread `thread` of the call.
/// Returns 0, or 1 after a check fired (the frame says which).
typedef int32_t (*KilnParallelBody)(KilnFrame* frame, void* captures, int64_t begin, int64_t end,
                                    int64_t thread);

/// What one call of a kernel works on.
struct KilnFrame {
  void* const* tensors;            // data of each parameter, in order
  const int64_t* scalars;          // sizes, then strides
  uint8_t* workspace;              // Variant::workspace_bytes, 64-byte aligned
  uint8_t* thread_workspace;       // thread_workspace_bytes for each thread, one after another
  int64_t thread_workspace_bytes;  // Variant::workspace_bytes_per_thread, a multiple of 64
  /// Runs body over 0 .. count - 1 in parts; returns when all have ended. Non-zero when one failed.
  int32_t (*parallel_for)(KilnFrame* frame, KilnParallelBody body, void* captures, int64_t count);
  void* pool;  // the runtime's own
  /// Set to non-zero from outside to end the call early; loops look at it at their outermost level.
  const int32_t* cancelled;
  /// Written when a check fires: its number in Artifact::checks and the values.
  int32_t fired_check;
  int64_t fired_index;
  int64_t fired_extent;
};

/// The entry of a variant. 0 done; 1 a check fired; 2 cancelled.
typedef int32_t (*KilnEntry)(KilnFrame* frame);

/// CUDA: a __global__ function takes, in this order, a pointer for each parameter, each scalar as
/// an int64 (sizes, then strides), a pointer to the workspace, and a pointer to one of these, whose
/// `check` the host sets to -1 before the launch.
typedef struct {
  int32_t check;
  int32_t reserved;
  int64_t index;
  int64_t extent;
} KilnDeviceFault;

}  // extern "C"

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::cuda {

// The part of the CUDA driver's interface that Kiln uses. Declared here, so that building needs no
// toolkit; tests/cuda compares it with cuda.h where there is one. Handles are opaque pointers.
using Result = int;
using DevicePointer = unsigned long long;

/// The functions of libcuda, found at run time.
struct DriverApi {
#define FUNCTION(name, symbol, parameters) Result(*name) parameters;
#include "runtime/cuda/driver_functions.def"
#undef FUNCTION
};

/// Attributes of cuDeviceGetAttribute, cuFuncSetAttribute and cuMemPoolSetAttribute, and flags.
constexpr int kMaxThreadsOfBlock = 1;
constexpr int kMaxBlockX = 2;   // y and z follow
constexpr int kMaxGridX = 5;    // y and z follow
constexpr int kClockRate = 13;  // in kHz
constexpr int kMultiprocessorCount = 16;
constexpr int kMemoryClockRate = 36;  // in kHz; memory moves twice in a clock
constexpr int kMemoryBusWidth = 37;   // in bits
constexpr int kL2CacheSize = 38;      // in bytes
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMaxSharedBytesOptIn = 97;
constexpr int kMemoryPoolsSupported = 115;
constexpr int kFunctionMaxDynamicSharedBytes = 8;
constexpr int kPoolReleaseThreshold = 4;
constexpr unsigned kPinnedForAllContexts = 1;
constexpr unsigned kPinnedMapped = 2;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventWithoutTiming = 2;
constexpr int kCaptureOfThisThread = 1;
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogBytes = 6;

/// Opens libcuda once for the process: KILN_LIBCUDA names a file, else libcuda.so.1 is searched as
/// the system does. Throws Unavailable NO_DEVICE with what is missing and what to do.
const DriverApi& driver_api();

}  // namespace kiln::cuda

// Which results of the driver are a matter of one call, and which end the process. cuda.h says of a
// kernel that reads beside its memory (700) and the like that the process must end; of a launch
// that is refused (701) nothing is lost. A result that is not in the table is taken for one of the
// first kind, since a new process costs little.
#include "runtime/cuda/driver_errors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/core/error.h"

namespace kiln::cuda {
namespace {

/// A result after which the device works on.
struct Refusal {
  Result result;
  ErrorKind kind;
  std::string_view reason;
  std::string_view sentence;  // empty: the driver's own
};

constexpr std::string_view kFull = "the device is out of memory";
constexpr std::string_view kTooLarge =
    "a block needs more registers or shared memory than the device has; use smaller blocks";
constexpr std::string_view kNoCode =
    "the device or its driver does not run this code; compile it for the device's own arch, or "
    "update the driver";

constexpr std::array kRefusals = {
    Refusal{2, ErrorKind::ResourceExhausted, "DEVICE_MEMORY", kFull},
    Refusal{701, ErrorKind::ResourceExhausted, "LAUNCH_RESOURCES", kTooLarge},
    Refusal{720, ErrorKind::ResourceExhausted, "LAUNCH_RESOURCES", kTooLarge},
    Refusal{200, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // an invalid image
    Refusal{209, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // no binary for this GPU
    Refusal{218, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // invalid PTX
    Refusal{221, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // no compiler of PTX
    Refusal{222, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // PTX of a later version
    Refusal{223, ErrorKind::Unsupported, "DEVICE_CODE", kNoCode},  // PTX is not compiled here
    // We asked for what makes no sense.
    Refusal{1, ErrorKind::Internal, "DRIVER_CALL", ""},    // invalid value
    Refusal{98, ErrorKind::Internal, "DRIVER_CALL", ""},   // invalid device function
    Refusal{400, ErrorKind::Internal, "DRIVER_CALL", ""},  // invalid handle
    Refusal{500, ErrorKind::Internal, "DRIVER_CALL", ""},  // not found
};

/// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)"
std::string in_words(const DriverApi& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.error_name(result, &name) != 0 || name == nullptr) name = "unknown error";
  if (api.error_text(result, &text) != 0 || text == nullptr) text = "no description";
  return fmt::format("{} ({}, {})", text, name, result);
}

}  // namespace

void check(const DriverApi& api, Result result, const std::string& action) {
  if (result == 0) return;
  const auto refusal = std::ranges::find(kRefusals, result, &Refusal::result);
  if (refusal == kRefusals.end()) {
    fail(ErrorKind::Unavailable, "DEVICE_FAULT", "the CUDA driver could not {}: {}", action,
         in_words(api, result));
  }
  const std::string why =
      refusal->sentence.empty() ? in_words(api, result) : std::string(refusal->sentence);
  fail(refusal->kind, refusal->reason, "the CUDA driver could not {}: {}", action, why);
}

}  // namespace kiln::cuda

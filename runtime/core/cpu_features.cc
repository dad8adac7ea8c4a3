// What instructions a host has, asked of its CPU, so that artifacts are run or refused where there
// is no compiler. Wide registers need the operating system too, which has to keep them for each
// thread.
//
// Bits: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E; XCR0: Intel SDM volume 1, 13.3.
#include "runtime/core/cpu_features.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <cpuid.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln {
namespace {

enum Register : uint8_t { kEax, kEbx, kEcx, kEdx };
/// What the operating system keeps: bits of XCR0.
enum State : uint32_t { kNone = 0, kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000 };

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register word;
  uint8_t bit;
  State state = kNone;
};

constexpr uint32_t kAmd = 0x80000001;
constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, kEcx, 0},
    {"pclmul", 1, 0, kEcx, 1},
    {"ssse3", 1, 0, kEcx, 9},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"cx16", 1, 0, kEcx, 13},
    {"sse4.1", 1, 0, kEcx, 19},
    {"sse4.2", 1, 0, kEcx, 20},
    {"crc32", 1, 0, kEcx, 20},
    {"movbe", 1, 0, kEcx, 22},
    {"popcnt", 1, 0, kEcx, 23},
    {"aes", 1, 0, kEcx, 25},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"bmi", 7, 0, kEbx, 3},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"adx", 7, 0, kEbx, 19},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"sha", 7, 0, kEbx, 29},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"gfni", 7, 0, kEcx, 8},
    {"vaes", 7, 0, kEcx, 9, kYmm},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmm},
    {"amx-bf16", 7, 0, kEdx, 22, kTiles},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"amx-tile", 7, 0, kEdx, 24, kTiles},
    {"amx-int8", 7, 0, kEdx, 25, kTiles},
    {"sha512", 7, 1, kEax, 0, kYmm},
    {"sm3", 7, 1, kEax, 1, kYmm},
    {"sm4", 7, 1, kEax, 2, kYmm},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"amx-fp16", 7, 1, kEax, 21, kTiles},
    {"avxifma", 7, 1, kEax, 23, kYmm},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmm},
    {"avxneconvert", 7, 1, kEdx, 5, kYmm},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmm},
    {"sahf", kAmd, 0, kEcx, 0},
    {"lzcnt", kAmd, 0, kEcx, 5},
    {"sse4a", kAmd, 0, kEcx, 6},
    {"prfchw", kAmd, 0, kEcx, 8},
    {"xop", kAmd, 0, kEcx, 11, kYmm},
    {"fma4", kAmd, 0, kEcx, 16, kYmm},
    {"tbm", kAmd, 0, kEcx, 21},
};

const Feature* find(std::string_view name) {
  const auto* const row = std::ranges::find(kFeatures, name, &Feature::name);
  return row == std::end(kFeatures) ? nullptr : row;
}

/// XCR0; 0 where there is none to read.
uint32_t kept_state() {
  std::array<uint32_t, 4> words{};
  constexpr uint32_t kOsxsave = 1U << 27;
  if (__get_cpuid(1, &words[0], &words[1], &words[2], &words[3]) == 0) return 0;
  if ((words[kEcx] & kOsxsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool host_has(const Feature& feature) {
  std::array<uint32_t, 4> words{};
  if (__get_cpuid_count(feature.leaf, feature.subleaf, &words[0], &words[1], &words[2],
                        &words[3]) == 0) {
    return false;
  }
  const bool has = (words[feature.word] >> feature.bit & 1) != 0;
  return has && (kept_state() & feature.state) == feature.state &&
         (feature.state != kTiles || may_use_tiles());
}

constexpr size_t kNamed = 4;  // in a sentence

}  // namespace

// Linux, Documentation/arch/x86/xstate.rst: since 5.16; a kernel without it has no such call, and a
// sandbox may refuse it.
bool may_use_tiles() {
  static const bool allowed = [] {
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // bit of XCR0
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return allowed;
}

bool is_code_feature(std::string_view name) { return find(name) != nullptr; }

std::string lacking_features(std::span<const std::string> names) {
  std::vector<std::string_view> lacking;
  for (const std::string& name : names) {
    const Feature* const feature = find(name);
    if (feature == nullptr || !host_has(*feature)) lacking.push_back(name);
  }
  const size_t more = lacking.size() - std::min(lacking.size(), kNamed);
  lacking.resize(lacking.size() - more);
  return fmt::format("{}{}", fmt::join(lacking, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace kiln

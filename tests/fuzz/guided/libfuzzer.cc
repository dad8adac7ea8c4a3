// What libFuzzer calls, for the target that KILN_FUZZ_TARGET names.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/fuzz/guided/targets.h"
#include "tests/fuzz/mutate_message.h"

namespace kiln::testing {
namespace {

const FuzzTarget& target() {
  static const FuzzTarget& found = []() -> const FuzzTarget& {
    const char* name = std::getenv("KILN_FUZZ_TARGET");
    for (const FuzzTarget& candidate : fuzz_targets()) {
      if (name != nullptr && candidate.name == name) return candidate;
    }
    std::fprintf(stderr, "KILN_FUZZ_TARGET must be one of:");
    for (const FuzzTarget& candidate : fuzz_targets())
      std::fprintf(stderr, " %s", std::string(candidate.name).c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }();
  return found;
}

}  // namespace
}  // namespace kiln::testing

extern "C" {

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    kiln::testing::target().run({reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}

/// A message is changed in one of its fields; text, and a message now and then, in its bytes.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const kiln::testing::FuzzTarget& target = kiln::testing::target();
  kiln::testing::Random random(seed);
  if (target.message == nullptr || random.chance(0.1))
    return LLVMFuzzerMutate(data, size, max_size);
  const std::unique_ptr<google::protobuf::Message> message(target.message()->New());
  if (!message->ParseFromArray(data, static_cast<int>(size))) message->Clear();
  for (int changes = random.between(1, 3); changes > 0; --changes)
    kiln::testing::mutate(*message, random);
  const std::string bytes = message->SerializeAsString();
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

}  // extern "C"

#include "tests/fuzz/guided/targets.h"

#include "kiln/v1/service.pb.h"

namespace kiln::testing {
namespace {

template <typename Message>
const google::protobuf::Message* empty() {
  return &Message::default_instance();
}

constexpr FuzzTarget kTargets[] = {
    {"kernel", fuzz_kernel, empty<v1::KernelText>},
    {"text", fuzz_text, nullptr},
    {"schedule", fuzz_schedule, nullptr},
    {"request", fuzz_request, empty<v1::SubmitRequest>},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace kiln::testing

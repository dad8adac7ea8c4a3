#include <algorithm>
#include <cmath>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/interpret.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "compiler/loops_artifact.h"
#include "compiler/lower.h"
#include "kiln/v1/service.pb.h"
#include "server/engine/compile_request.h"
#include "tests/fuzz/guided/refusals.h"
#include "tests/fuzz/guided/targets.h"

namespace kiln::testing {
namespace {

using language::HostTensor;

constexpr double kMaxElements = 4096;

/// Ends loops that would run for seconds.
class Budget : public ir::InterpretWatch {
 public:
  bool is_cancelled() const override { return ++iterations_ > 5'000; }

 private:
  mutable int64_t iterations_ = 0;
};

std::vector<ArgumentSlot> slots_of(const v1::RunRequest& request) {
  std::vector<ArgumentSlot> slots;
  for (const v1::Argument& argument : request.arguments()) {
    ArgumentSlot slot;
    slot.given = argument.has_inline_();
    if (slot.given) {
      const v1::Inline& value = argument.inline_();
      const auto type = dtype_from_number(value.type());
      if (!type) fail(ErrorKind::InvalidArgument, "DTYPE", "an argument has an unknown type");
      slot.layout = {*type, {value.shape().begin(), value.shape().end()}, {}};
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// Calls the loops with the arguments of the request. Numbers that it leaves out are 0.
void call(const Artifact& artifact, const KernelNames& names, const ir::Kernel& loops,
          const v1::RunRequest& request) {
  const BoundCall bound = bind_arguments(artifact, names, slots_of(request),
                                         {request.sizes().begin(), request.sizes().end()});
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < bound.shapes.size(); ++i) {
    double elements = 1;
    for (const int64_t extent : bound.shapes[i])
      elements *= static_cast<double>(extent);
    if (elements > kMaxElements) return;
    HostTensor tensor{artifact.parameters[i].type, bound.shapes[i], {}};
    tensor.bytes.resize(static_cast<size_t>(byte_size(tensor.type, tensor.shape)));
    const std::string& data = request.arguments(static_cast<int>(i)).inline_().data();
    std::transform(
        data.begin(),
        data.begin() + static_cast<ptrdiff_t>(std::min(data.size(), tensor.bytes.size())),
        tensor.bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    arguments.push_back(std::move(tensor));
  }
  const std::span<const int64_t> sizes(bound.scalars.data(), loops.sizes.size());
  Budget budget;
  ir::interpret(loops, sizes, arguments, budget);
}

}  // namespace

void fuzz_request(std::string_view input) {
  v1::SubmitRequest wire;
  if (!wire.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  const server::CompileSetting setting{"build", [](TargetKind) { return std::string("sm_90"); }};
  server::CheckedRequest checked;
  language::Kernel kernel;
  language::Schedule schedule;
  const bool is_kernel = runs_or_refuses([&] {
    checked = server::check_request(wire.kernel(), setting);
    must_run("decode what was checked", [&] {
      kernel = language::decode(checked.wire.definition(), checked.wire.source_map());
      schedule = language::decode_schedule(checked.wire.schedule(), kernel);
    });
  });
  if (!is_kernel) return;
  CompileOptions options;
  options.automatic = wire.kernel().options().auto_() != v1::AUTO_MODE_NEVER;
  options.strict = wire.kernel().options().strict();
  // Large kernels are refused sooner, so that there are many cases in a second.
  options.limits.statements = 1'000;
  options.limits.unrolled_iterations = 64;
  for (const TargetKind kind : {TargetKind::Llvm, TargetKind::Cuda}) {
    const Target target{kind, kind == TargetKind::Cuda ? "sm_90" : ""};
    runs_or_refuses([&] {
      LoweringObserver silent;
      lower(kernel, choose_schedule(kernel, schedule, target, options), target, options,
            wire.kernel().options().fast() ? Layout::Strided : Layout::Compact, silent);
    });
  }
  runs_or_refuses([&] {
    const Target interpreter{TargetKind::Interpreter, ""};
    LoweringObserver silent;
    const Artifact artifact = compile_loops(kernel, schedule, interpreter, options);
    const ir::Kernel loops = plain_loops(kernel, schedule, interpreter, options, silent);
    call(artifact, checked.names, loops, wire.run());
  });
}

}  // namespace kiln::testing

// Compiles and runs kernels in this process, each argument between guard pages, compact or spread
// over twice its memory.
#include "tests/support/run_on_cpu.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "compiler/codegen/cpu_artifact.h"
#include "compiler/compile.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"
#include "tests/support/guarded_memory.h"

namespace kiln::testing {

Device& cpu_device(int threads) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Device>> devices;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Device>& device = devices[threads];
  if (!device) device = open_cpu_device({.threads = threads, .arch = host_cpu()});
  return *device;
}

std::shared_ptr<const Artifact> compile_lowered(const ir::Kernel& kernel, const std::string& arch) {
  return std::make_shared<Artifact>(
      codegen::make_cpu_artifact(kernel, nullptr, {.arch = arch.empty() ? host_cpu() : arch}));
}

std::shared_ptr<const Artifact> compile_for_host(const language::Kernel& kernel,
                                                 const language::Schedule& schedule,
                                                 const CompileOptions& options) {
  return std::make_shared<Artifact>(
      compile(kernel, schedule, {TargetKind::Llvm, host_cpu()}, options));
}

KernelNames plain_names(const Artifact& artifact) {
  KernelNames names;
  names.kernel = "K";
  for (size_t i = 0; i < artifact.parameters.size(); ++i) {
    names.parameters.push_back("p" + std::to_string(i));
  }
  for (int32_t i = 0; i < artifact.size_count; ++i) {
    names.sizes.push_back("n" + std::to_string(i));
  }
  for (int i = 0; i < 16; ++i) {
    names.stages.push_back("stage" + std::to_string(i));
  }
  return names;
}

namespace {

/// Arguments of one call, each between pages that may not be touched. Calls take turns in which end
/// of the memory lies at such a page.
class GuardedArguments {
 public:
  GuardedArguments() {
    static std::atomic<int> calls = 0;
    edge_ = ++calls % 4 == 0 ? GuardedMemory::Edge::Begin : GuardedMemory::Edge::End;
  }

  void add(const std::vector<std::byte>& contents) {
    const std::string name = "argument " + std::to_string(memory_.size());
    memory_.push_back(std::make_unique<GuardedMemory>(name, contents.size(), edge_));
    std::copy(contents.begin(), contents.end(), memory_.back()->data());
    pointers_.push_back(memory_.back()->data());
  }

  std::span<void* const> pointers() const { return pointers_; }

  void read(size_t argument, std::vector<std::byte>& contents) const {
    std::copy_n(memory_[argument]->data(), contents.size(), contents.begin());
  }

 private:
  GuardedMemory::Edge edge_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
  std::vector<void*> pointers_;
};

}  // namespace

void run_artifact(const std::shared_ptr<const Artifact>& artifact, std::vector<HostTensor>& tensors,
                  const std::map<std::string, int64_t>& sizes, int threads) {
  const KernelNames names = plain_names(*artifact);
  std::vector<ArgumentSlot> slots;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (artifact->parameters[i].is_output) {
      slots.push_back({false, {}});
    } else {
      slots.push_back({true, {tensors[i].type, tensors[i].shape, {}}});
    }
  }
  const BoundCall bound = bind_arguments(*artifact, names, slots, sizes);

  Device& device = cpu_device(threads);
  GuardedArguments arguments;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (artifact->parameters[i].is_output) {
      tensors[i] = zeros(artifact->parameters[i].type, bound.shapes[i]);
    }
    arguments.add(tensors[i].bytes);
  }
  device.run(*device.load(artifact), {arguments.pointers(), &bound, &names});
  for (size_t i = 0; i < tensors.size(); ++i)
    arguments.read(i, tensors[i].bytes);
}

void run_spread_out(const std::shared_ptr<const Artifact>& artifact,
                    std::vector<HostTensor>& tensors, const std::map<std::string, int64_t>& sizes,
                    int threads) {
  constexpr std::byte kForeign{0xa7};
  const KernelNames names = plain_names(*artifact);
  Device& device = cpu_device(threads);
  std::vector<ArgumentSlot> slots;
  GuardedArguments arguments;
  for (const HostTensor& tensor : tensors) {
    std::vector<int64_t> strides = compact_strides(tensor.shape);
    for (int64_t& stride : strides)
      stride *= 2;
    slots.push_back({true, {tensor.type, tensor.shape, strides}});
    const auto element = static_cast<size_t>(size_of(tensor.type));
    std::vector<std::byte> memory(2 * tensor.bytes.size(), kForeign);
    for (size_t i = 0; i < tensor.bytes.size(); i += element)
      std::copy_n(&tensor.bytes[i], element, &memory[2 * i]);
    arguments.add(memory);
  }
  const BoundCall bound = bind_arguments(*artifact, names, slots, sizes);
  device.run(*device.load(artifact), {arguments.pointers(), &bound, &names});
  for (size_t t = 0; t < tensors.size(); ++t) {
    HostTensor& tensor = tensors[t];
    const auto element = static_cast<size_t>(size_of(tensor.type));
    std::vector<std::byte> memory(2 * tensor.bytes.size());
    arguments.read(t, memory);
    for (size_t i = 0; i < tensor.bytes.size(); i += element) {
      std::copy_n(&memory[2 * i], element, &tensor.bytes[i]);
      const auto* gap = &memory[2 * i + element];
      EXPECT_TRUE(std::all_of(gap, gap + element, [](std::byte b) { return b == kForeign; }))
          << "argument " << t << ": the kernel wrote between its elements";
    }
  }
}

std::vector<HostTensor> run_on_cpu(const language::Kernel& kernel,
                                   const language::Schedule& schedule,
                                   const std::vector<int64_t>& sizes,
                                   const std::vector<HostTensor>& inputs, int threads,
                                   const CompileOptions& options) {
  const auto artifact = compile_for_host(kernel, schedule, options);
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < sizes.size(); ++i) {
    named["n" + std::to_string(i)] = sizes[i];
  }
  std::vector<HostTensor> tensors;
  size_t next = 0;
  for (const Parameter& parameter : artifact->parameters) {
    tensors.push_back(parameter.is_output ? HostTensor{} : inputs.at(next++));
  }
  run_artifact(artifact, tensors, named, threads);
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (artifact->parameters[i].is_output) outputs.push_back(std::move(tensors[i]));
  }
  return outputs;
}

}  // namespace kiln::testing

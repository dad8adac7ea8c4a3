// Many kernels as one source: the host's compiler takes a second for what stands in front of the
// first one, and little for each.
#include "tests/cuda/generated/host_gpu.h"

#include <fmt/format.h>

#include "compiler/codegen/artifact_parts.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/codegen/narrow_index.h"
#include "compiler/codegen/nvrtc.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/fuzz_case.h"

namespace kiln::testing {
namespace {

KernelNames names_of(const ir::Kernel& kernel) {
  KernelNames names;
  names.kernel = kernel.name;
  for (const ir::BufferRef& parameter : kernel.parameters)
    names.parameters.push_back(parameter->name);
  for (const ir::VarRef& size : kernel.sizes)
    names.sizes.push_back(size->name);
  names.stages.resize(64, "stage");
  return names;
}

}  // namespace

size_t HostGpu::add(ir::Kernel kernel) {
  kernels_.push_back(std::move(kernel));
  return kernels_.size() - 1;
}

void HostGpu::compile(bool strict) {
  std::vector<codegen::CudaEntry> entries;
  std::vector<SizeExpr> conditions;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    // Every other one as it is for sizes whose indices have 32 bits, as those of tests have.
    const std::optional<SizeExpr> is_narrow =
        i % 2 == 1 ? codegen::where_indices_are_narrow(kernels_[i]) : std::nullopt;
    entries.push_back({fmt::format("k{}", i), &kernels_[i], is_narrow.has_value()});
    conditions.push_back(is_narrow.value_or(SizeExpr::constant(1)));
  }
  const codegen::CudaSource source = codegen::cuda_source(entries);
  const codegen::CudaBinary binary = codegen::compile_cuda_source(source.text, {"sm_90", strict});
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const ir::Kernel& kernel = kernels_[i];
    auto artifact = std::make_shared<Artifact>();
    artifact->target = TargetKind::Cuda;
    artifact->arch = "sm_90";
    artifact->size_count = static_cast<int32_t>(kernel.sizes.size());
    artifact->parameters = codegen::parameters_of(kernel);
    artifact->checks = kernel.checks;
    artifact->code = binary.cubin;
    Variant variant;
    variant.condition = conditions[i];
    variant.launches = source.launches[i];
    variant.loops = source.loops[i];
    variant.workspace_bytes = codegen::bytes_of(kernel.workspace_bytes, kernel);
    artifact->variants.push_back(std::move(variant));
    artifacts_.push_back(std::move(artifact));
  }
}

std::vector<HostTensor> HostGpu::run(size_t kernel, const std::vector<int64_t>& sizes,
                                     const std::vector<HostTensor>& inputs) const {
  const std::shared_ptr<const Artifact> artifact = artifacts_[kernel];
  const KernelNames names = names_of(kernels_[kernel]);
  std::vector<ArgumentSlot> slots;
  size_t next = 0;
  for (const Parameter& parameter : artifact->parameters) {
    ArgumentSlot slot{false, {}};
    if (!parameter.is_output) {
      const HostTensor& input = inputs.at(next++);
      slot = {true, {input.type, input.shape, {}}};
    }
    slots.push_back(slot);
  }
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < sizes.size(); ++i)
    named[names.sizes[i]] = sizes[i];
  const BoundCall bound = bind_arguments(*artifact, names, slots, named);

  if (!device_) device_ = open_cuda_device(0);
  std::shared_ptr<LoadedKernel>& loaded = loaded_[kernel];
  try {
    if (!loaded) loaded = device_->load(artifact);
    return run_on(*device_, *loaded, bound, names, inputs);
  } catch (const Error& error) {
    if (error.reason() != "DEVICE_FAULT") throw;
    const NewProcessAfterwards restart;  // the context is broken
    loaded_.clear();
    device_.reset();
    throw;
  }
}

std::vector<HostTensor> HostGpu::run_on(Device& device, const LoadedKernel& loaded,
                                        const BoundCall& bound, const KernelNames& names,
                                        const std::vector<HostTensor>& inputs) {
  const Artifact* const artifact = &loaded.artifact();
  std::vector<std::unique_ptr<DeviceBuffer>> memory;
  std::vector<void*> pointers;
  size_t next = 0;
  for (size_t i = 0; i < artifact->parameters.size(); ++i) {
    const Parameter& parameter = artifact->parameters[i];
    const int64_t bytes = element_count(bound.shapes[i]) * size_of(parameter.type);
    memory.push_back(device.allocate(bytes));
    pointers.push_back(memory.back()->data());
    if (!parameter.is_output) device.copy_in(pointers.back(), inputs[next++].bytes.data(), bytes);
  }
  device.run(loaded, {.tensors = pointers, .bound = &bound, .names = &names});
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < artifact->parameters.size(); ++i) {
    if (!artifact->parameters[i].is_output) continue;
    HostTensor output = zeros(artifact->parameters[i].type, bound.shapes[i]);
    device.copy_out(output.bytes.data(), pointers[i], static_cast<int64_t>(output.bytes.size()));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::string difference_on_host(const language::TextKernel& text, const ir::Kernel& loops,
                               const std::vector<int64_t>& sizes) {
  HostGpu gpu;
  const size_t place = gpu.add(loops);
  gpu.compile();
  Random random(3);
  const std::vector<HostTensor> inputs = random_inputs(text.kernel, sizes, random);
  const std::vector<HostTensor> expected =
      language::evaluate(text.kernel.definition, text.kernel.names, sizes, inputs);
  const std::vector<double> errors(expected.size(), 1e-4);
  try {
    return difference(gpu.run(place, sizes, inputs), expected, errors);
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace kiln::testing

// The leak sanitizer takes thread-local memory of libraries that were loaded and unloaded for what
// it is not, and reads past it (its __tls_get_addr guesses where the allocation begins); here that
// is hundreds of them. Without it, it looks everywhere else.
extern "C" const char* __lsan_default_options();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "use_tls=0";
}

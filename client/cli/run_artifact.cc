// `kiln run NAME.kart`: a compiled kernel, run in this process over the library that programs of
// users link (kiln/runtime.h).
#include "client/cli/run_artifact.h"

#include <array>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <kiln/runtime.h>

#include "client/cli/report.h"

namespace kiln::cli {
namespace {

ErrorKind kind_named(const std::string& name) {
  constexpr std::array kKinds = {
      ErrorKind::InvalidArgument,  ErrorKind::Unsupported,       ErrorKind::NotFound,
      ErrorKind::HandleLost,       ErrorKind::ResourceExhausted, ErrorKind::Unavailable,
      ErrorKind::DeadlineExceeded, ErrorKind::Cancelled,         ErrorKind::Unauthenticated};
  for (const ErrorKind kind : kKinds) {
    if (name_of(kind) == name) return kind;
  }
  return ErrorKind::Internal;
}

/// Errors of the library as those of the client.
template <typename Body>
auto with_client_errors(Body&& body) {
  try {
    return body();
  } catch (const runtime::Error& error) {
    throw_error(
        {.kind = kind_named(error.kind()), .reason = error.reason(), .message = error.what()});
  }
}

void refuse_flags(const KernelChoice& kernel, const CallChoice& call) {
  const std::pair<bool, std::string_view> flags[] = {
      {!kernel.kernel.empty(), "--kernel"},  {!kernel.schedule.empty(), "--schedule"},
      {kernel.no_schedule, "--no-schedule"}, {kernel.no_auto, "--no-auto"},
      {kernel.strict, "--strict"},           {kernel.fast, "--fast"},
      {call.interpret, "--interpret"},       {call.check_nan, "--check-nan"},
      {call.timeout > 0, "--timeout"}};
  for (const auto& [is_given, name] : flags) {
    if (is_given) {
      throw UsageError(
          fmt::format("{} has no effect on {}, which is compiled already", name, kernel.file));
    }
  }
}

/// Which GPU a kernel for CUDA runs on; of others 0.
int gpu_of(const CallChoice& call) {
  const std::string gpu = call.numbered_gpu();
  if (gpu.empty()) {
    call.target();  // refuses what is no device
    return 0;
  }
  return std::stoi(gpu.substr(gpu.find(':') + 1));
}

std::vector<Parameter> parameters_of(const runtime::Artifact& artifact) {
  std::vector<Parameter> parameters;
  for (const KilnParameter& each : artifact.parameters()) {
    Parameter& parameter = parameters.emplace_back();
    parameter.name = each.name;
    parameter.type = static_cast<DType>(each.dtype);
    parameter.output = each.is_output != 0;
    if (each.rank > 0) parameter.shape = {each.shape};
  }
  return parameters;
}

runtime::Tensor tensor_of(const Array& array) {
  return {static_cast<int32_t>(array.dtype()), array.bytes().data(), array.shape()};
}

}  // namespace

bool is_artifact(const std::string& path) {
  if (path.ends_with(".kart")) return true;
  constexpr std::string_view kMagic = "KILNFILE";
  std::string begin(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kMagic;
}

int run_artifact(const Common& common, const KernelChoice& kernel, const CallChoice& call,
                 const OutputChoice& output) {
  refuse_flags(kernel, call);
  const runtime::Artifact artifact = with_client_errors(
      [&] { return runtime::Artifact(kernel.file, {.threads = 0, .gpu = gpu_of(call)}); });
  if (call.device != "cpu" && call.target() != artifact.target()) {
    throw UsageError(fmt::format("{} is compiled for {}, so it cannot run on {}", kernel.file,
                                 artifact.target(), call.device));
  }
  const std::vector<Parameter> parameters = parameters_of(artifact);
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    if (parameter.output) names.push_back(parameter.name);
  }
  output.check(names, artifact.name(), common.json);
  const std::vector<Argument> inputs = call.load(artifact.name(), parameters);
  const runtime::Sizes sizes = call.sizes_among(artifact.name(), artifact.sizes());

  std::vector<runtime::Tensor> tensors;
  auto input = inputs.begin();
  for (const Parameter& parameter : parameters) {
    tensors.push_back(parameter.output ? runtime::Tensor() : tensor_of(std::get<Array>(*input++)));
  }
  const auto shapes = with_client_errors([&] { return artifact.shapes(tensors, sizes); });
  std::vector<NamedArray> outputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].output) continue;
    outputs.push_back(
        {parameters[i].name, Array(shapes[i], parameters[i].type, SourceLocation::none())});
    tensors[i] = tensor_of(outputs.back().value);
  }
  Timings timings;
  timings.kernel = with_client_errors([&] { return artifact(tensors, sizes); });
  output.deliver(outputs, timings, common.json);
  return 0;
}

}  // namespace kiln::cli

// What a worker adds to a launch: a call on tensors that stay on the device, from its message to
// the answer, beside the same functions of the driver alone. Both run on the fake driver, where a
// launch is a function of the host, so that the difference of the two is Kiln's own.
//
//   KILN_LIBCUDA=build/release/tests/cuda/fake/libfake_libcuda.so build/release/bin/resident_call
#include <array>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_errors.h"
#include "runtime/cuda/driver_objects.h"
#include "server/worker/device_server.h"

namespace kiln {
namespace {

constexpr int64_t kElements = 64;
constexpr int64_t kBytes = kElements * static_cast<int64_t>(sizeof(float));

/// The kernel that the fake driver knows: y[i] = x[i] + 1.
Artifact add_one(const std::string& arch) {
  Artifact artifact;
  artifact.target = TargetKind::Cuda;
  artifact.arch = arch;
  artifact.code = "fake cubin";
  artifact.size_count = 1;
  const SizeExpr n = SizeExpr::scalar(0);
  artifact.parameters = {{DType::Float32, {n}, false}, {DType::Float32, {n}, true}};
  artifact.variants.resize(1);
  artifact.variants[0].launches = {{"add_one", {SizeExpr::constant(1)}, {SizeExpr::constant(64)}}};
  return artifact;
}

internal::ToWorker call_message() {
  internal::ToWorker message;
  internal::Exec& exec = *message.mutable_exec();
  exec.set_call(1);
  exec.set_kernel(1);
  for (const uint64_t resident : {1, 2}) {
    internal::Place& place = *exec.add_tensors();
    place.set_arena(1);
    place.set_offset((resident - 1) * kBytes);
    place.add_shape(kElements);
    place.set_resident(resident);
  }
  // The size, and the strides of both tensors.
  for (const int64_t scalar : {kElements, int64_t{1}, int64_t{1}})
    exec.add_scalars(scalar);
  exec.set_repeat(1);
  exec.set_measurements(1);
  return message;
}

void worker_call(benchmark::State& state) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const server::Fd page = server::make_memfd("page", server::kStatusPageBytes);
  const server::SharedStatus status(page);
  server::DeviceServer worker(*device, *status, [](const auto&, const auto&) {});
  std::vector<server::Fd> arena;
  arena.push_back(server::make_memfd("arena", 2 * kBytes));
  internal::AddArenas added;
  added.add_arenas()->set_arena(1);
  added.mutable_arenas(0)->set_bytes(2 * kBytes);
  worker.add_arenas(added, arena);
  internal::LoadKernel load;
  load.set_kernel(1);
  load.set_artifact(serialize(add_one(device->arch())));
  load.mutable_names()->set_kernel("add_one");
  worker.load(load);
  const std::string packet = call_message().SerializeAsString();
  internal::ToWorker message;
  internal::FromWorker answer;
  for (auto _ : state) {
    if (!message.ParseFromString(packet)) state.SkipWithError("no message");
    *answer.mutable_done() = worker.exec(message.exec());
    benchmark::DoNotOptimize(answer.SerializeAsString());
  }
  if (answer.done().has_error()) state.SkipWithError(answer.done().error().message().c_str());
}
BENCHMARK(worker_call);

void driver_alone(benchmark::State& state) {
  const cuda::DriverApi& api = cuda::driver_api();
  const cuda::DeviceProperties properties = cuda::properties_of(api, 0);
  const cuda::Context context(api, properties.handle);
  context.use();
  const cuda::Stream stream(api);
  cuda::Event begin(api);
  cuda::Event end(api);
  const cuda::Module module(api, "fake cubin");
  void* const function = module.function("add_one");
  cuda::DevicePointer x = 0;
  cuda::DevicePointer y = 0;
  cuda::check(api, api.allocate(&x, kBytes), "allocate");
  cuda::check(api, api.allocate(&y, kBytes), "allocate");
  int64_t n = kElements;
  int64_t stride = 1;
  void* none = nullptr;
  std::array<void*, 8> parameters = {&x, &y, &n, &stride, &stride, &none, &none, &none};
  for (auto _ : state) {
    context.use();
    begin.record(stream);
    cuda::check(
        api,
        api.launch(function, 1, 1, 1, 64, 1, 1, 0, stream.handle(), parameters.data(), nullptr),
        "launch");
    end.record(stream);
    end.wait("run");
    benchmark::DoNotOptimize(begin.seconds_until(end));
  }
  api.free(x);
  api.free(y);
}
BENCHMARK(driver_alone);

}  // namespace
}  // namespace kiln

BENCHMARK_MAIN();

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include <signal.h>

#include "kiln/v1/program.grpc.pb.h"
#include "tests/cuda/fake/counters.h"
#include "tests/server/service_test.h"

// Tensors on devices with memory of their own: the runtime for CUDA on a fake driver, in a worker
// of its own.
namespace kiln::server {
namespace {

class Resident : public ServiceTest {
 protected:
  Resident() {
    ::setenv("KILN_LIBCUDA", KILN_FAKE_LIBCUDA, 1);
    ::setenv("FAKE_CUDA_COUNTS", counts().c_str(), 1);
    ::setenv("FAKE_CUDA_DEVICES", "2", 1);
    restart_with(usual_options());
  }
  ~Resident() override {
    service_.reset();
    for (const char* name : {"KILN_LIBCUDA", "FAKE_CUDA_COUNTS", "FAKE_CUDA_DEVICES"})
      ::unsetenv(name);
  }

  void restart_with(const EngineOptions& options) {
    restart(options);
    EXPECT_TRUE(eventually([&] {
      const v1::DescribeResponse seen = service_->engine().describe();
      return seen.devices_size() == 3 && std::ranges::all_of(seen.devices(), [](const auto& d) {
               return d.state() == "ready";
             });
    }));
  }
  std::string counts() const { return (folder_.path() / "counts").string(); }
  /// What the drivers of all workers have counted.
  fake::Numbers counted() const {
    fake::Numbers numbers{};
    std::ifstream in(counts(), std::ios::binary);
    in.read(reinterpret_cast<char*>(&numbers), sizeof numbers);
    return numbers;
  }

  static v1::CompileRequest for_cuda(v1::CompileRequest request) {
    request.mutable_target()->set_name("cuda");
    return request;
  }
  std::string begin_put(const std::vector<float>& values, const std::string& device = "cuda:0") {
    v1::TensorHeader header = header_of(static_cast<int64_t>(values.size()));
    header.set_device(device);
    std::string tensor;
    EXPECT_TRUE(service_->upload(header, {bytes_of(values)}, tensor).ok());
    return tensor;
  }
  /// On a GPU, waits until it is there: it begins its way with the upload.
  std::string put(const std::vector<float>& values, const std::string& device = "cuda:0") {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    const int64_t before = counted().copied_bytes;
    const std::string tensor = begin_put(values, device);
    const bool is_there =
        device == "cpu:0" || eventually([&] { return counted().copied_bytes >= before + bytes; });
    EXPECT_TRUE(is_there);
    return tensor;
  }
  grpc::Status copy(const v1::CopyRequest& request, std::string& tensor) {
    grpc::ClientContext context;
    v1::UploadResponse response;
    const grpc::Status status = service_->tensors->Copy(&context, request, &response);
    tensor = response.tensor();
    return status;
  }
  std::string copied(const std::string& tensor, const std::string& device) {
    v1::CopyRequest request;
    request.set_tensor(tensor);
    request.set_device(device);
    std::string made;
    EXPECT_TRUE(copy(request, made).ok());
    return made;
  }
  grpc::Status call(const std::string& kernel, const std::string& x, const std::string& y) {
    v1::RunRequest request;
    request.set_kernel_id(kernel);
    *request.add_arguments() = tensor_argument(x);
    *request.add_arguments() = tensor_argument(y);
    v1::RunResponse response;
    return service_->run(request, response);
  }
  /// A program whose one node makes x + 1 of its first value, which is of this kind; a parameter
  /// becomes that. Of one element: sizes in programs are constants, which the fake kernel is not
  /// told.
  v1::RunProgramRequest run_of(v1::ValueKind kind, const std::string& x) {
    v1::DefineProgramRequest request;
    request.mutable_target()->set_name("cuda");
    v1::Program& program = *request.mutable_program();
    program.set_name("counting");
    const v1::CompileRequest kernel = add_one("inc");
    *program.add_definitions() = kernel.definition();
    *program.add_source_maps() = kernel.source_map();
    program.add_values()->set_name("x");
    program.mutable_values(0)->set_kind(kind);
    program.add_values()->set_name("y");
    v1::ProgramNode& node = *program.add_nodes();
    node.set_name("inc");
    node.add_inputs(0);
    node.add_outputs(1);
    if (kind == v1::VALUE_KIND_PARAMETER) {
      program.add_updates()->set_value(1);
    } else {
      program.add_outputs(1);
    }
    grpc::ClientContext context;
    v1::DefineProgramResponse response;
    const auto programs = v1::ProgramService::NewStub(service_->channel());
    EXPECT_TRUE(programs->Define(&context, request, &response).ok());
    v1::RunProgramRequest run;
    run.set_program_id(response.program_id());
    *run.add_given()->mutable_argument() = tensor_argument(x);
    return run;
  }
  grpc::Status run(const v1::RunProgramRequest& request, v1::ProgramResult& result) {
    grpc::ClientContext context;
    const auto programs = v1::ProgramService::NewStub(service_->channel());
    const auto stream = programs->Run(&context, request);
    v1::ProgramEvent event;
    while (stream->Read(&event)) {
      if (event.has_result()) result = event.result();
    }
    return stream->Finish();
  }
  std::vector<float> get(const std::string& tensor) {
    std::string bytes;
    const grpc::Status status = service_->download(tensor, bytes);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return floats_of(bytes);
  }
  void end_worker(const std::string& device) {
    const int pid = service_->engine().pid_of(device);
    ::kill(pid, SIGKILL);
    EXPECT_TRUE(eventually([&] {
      const int next = service_->engine().pid_of(device);
      return next != 0 && next != pid;
    }));
  }
};

constexpr const char* kLost =
    "a tensor was lost when the worker of cuda:0 ended: it was a result that only the device had; "
    "compute it again";

TEST_F(Resident, ACallOnThemMovesNoByte) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1, 2, 3});
  const std::string y = put({0, 0, 0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  const fake::Numbers before = counted();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(call(kernel, x, y).ok());
  const fake::Numbers after = counted();
  EXPECT_EQ(after.copied_bytes, before.copied_bytes);
  EXPECT_EQ(after.launches, before.launches + 100);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(get(y), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(counted().copied_bytes, after.copied_bytes + 12);
  EXPECT_EQ(get(y), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(counted().copied_bytes, after.copied_bytes + 12);  // it is here now
}

TEST_F(Resident, OneCallFeedsTheNext) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  const fake::Numbers before = counted();
  ASSERT_TRUE(call(kernel, x, y).ok());
  ASSERT_TRUE(call(kernel, y, x).ok());
  ASSERT_TRUE(call(kernel, x, y).ok());
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes);
  EXPECT_EQ(get(y), (std::vector<float>{4}));
  EXPECT_EQ(get(x), (std::vector<float>{3}));
}

TEST_F(Resident, ResultsStayWhereTheyAreKept) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  v1::RunRequest request;
  request.set_kernel_id(kernel);
  *request.add_arguments() = tensor_argument(put({5}));
  *request.add_arguments() = output_argument(true);
  v1::RunResponse response;
  ASSERT_TRUE(service_->run(request, response).ok());
  const std::string y = response.results(0).tensor();
  const std::string z = put({0});
  const int64_t copied = counted().copied_bytes;
  ASSERT_TRUE(call(kernel, y, z).ok());
  EXPECT_EQ(counted().copied_bytes, copied);
  EXPECT_EQ(get(z), (std::vector<float>{7}));
}

TEST_F(Resident, AnUploadReplacesWhatTheDeviceHas) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  ASSERT_TRUE(call(kernel, y, x).ok());
  v1::TensorHeader header = header_of(1);
  header.set_into(x);
  std::string same;
  ASSERT_TRUE(service_->upload(header, {bytes_of({10})}, same).ok());
  EXPECT_EQ(get(x), (std::vector<float>{10}));
  ASSERT_TRUE(call(kernel, x, y).ok());
  EXPECT_EQ(get(y), (std::vector<float>{11}));
}

TEST_F(Resident, DevicesAndTheProcessorShareThem) {
  const std::string on_gpu = service_->kernel(for_cuda(add_one("inc")));
  const std::string on_cpu = service_->kernel(add_one("inc"));
  const std::string x = put({1}, "cuda:1");
  const std::string y = put({0}, "cuda:1");
  const std::string z = put({0}, "cpu:0");
  ASSERT_TRUE(call(on_gpu, x, y).ok());
  ASSERT_TRUE(call(on_cpu, y, z).ok());
  EXPECT_EQ(get(z), (std::vector<float>{3}));
  ASSERT_TRUE(call(on_cpu, z, y).ok());
  ASSERT_TRUE(call(on_gpu, y, x).ok());
  EXPECT_EQ(get(x), (std::vector<float>{5}));
}

TEST_F(Resident, LieOnOneDeviceForACall) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1}, "cuda:0");
  const std::string y = put({0}, "cuda:1");
  expect_status(call(kernel, x, y), grpc::StatusCode::INVALID_ARGUMENT, "SEVERAL_DEVICES",
                "the arguments of inc lie on cuda:0 and cuda:1; copy them to one device");
}

TEST_F(Resident, OnlyResultsAreLostWithAWorker) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  const std::string z = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  end_worker("cuda:0");
  std::string bytes;
  expect_status(service_->download(y, bytes), grpc::StatusCode::DATA_LOSS, "TENSOR_LOST", kLost);
  expect_status(call(kernel, y, z), grpc::StatusCode::DATA_LOSS, "TENSOR_LOST", kLost);
  // What was uploaded is uploaded again, and a result may be computed again.
  ASSERT_TRUE(call(kernel, x, y).ok());
  ASSERT_TRUE(call(kernel, y, z).ok());
  EXPECT_EQ(get(z), (std::vector<float>{3}));
}

TEST_F(Resident, ComeAndGoWhileACallRuns) {
  const std::string endless = service_->kernel(for_cuda(add_one_of("hang", 1)));
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  const fake::Numbers before = counted();
  std::thread caller([&] {
    v1::RunRequest request;
    request.set_kernel_id(endless);
    *request.add_arguments() = tensor_argument(x);
    *request.add_arguments() = output_argument();
    v1::RunResponse response;
    EXPECT_EQ(service_->run(request, response, std::chrono::seconds(5)).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  });
  EXPECT_TRUE(eventually([&] { return counted().launches == before.launches + 1; }));
  put({7});
  EXPECT_EQ(get(y), (std::vector<float>{2}));
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes + 8);
  caller.join();
}

TEST_F(Resident, AreCopiedOnTheirDevice) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1, 2});
  const std::string y = put({0, 0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  const fake::Numbers before = counted();
  const std::string z = copied(y, "cuda:0");
  EXPECT_EQ(counted().copied_within, before.copied_within + 8);
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes);
  ASSERT_TRUE(call(kernel, z, y).ok());
  EXPECT_EQ(get(z), (std::vector<float>{2, 3}));
  EXPECT_EQ(get(y), (std::vector<float>{3, 4}));
}

TEST_F(Resident, AreCopiedFromDeviceToDevice) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  const fake::Numbers before = counted();
  const std::string there = copied(y, "cuda:1");
  EXPECT_TRUE(eventually([&] { return counted().copied_bytes == before.copied_bytes + 8; }));
  const std::string z = put({0}, "cuda:1");
  ASSERT_TRUE(call(kernel, there, z).ok());
  EXPECT_EQ(get(z), (std::vector<float>{3}));
  EXPECT_EQ(get(copied(z, "cpu")), (std::vector<float>{3}));
}

TEST_F(Resident, AreCopiedIntoOthers) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  const std::string z = put({5}, "cuda:1");
  ASSERT_TRUE(call(kernel, x, y).ok());
  v1::CopyRequest request;
  request.set_tensor(y);
  request.set_into(z);
  std::string same;
  ASSERT_TRUE(copy(request, same).ok());
  EXPECT_EQ(same, z);
  EXPECT_EQ(get(z), (std::vector<float>{2}));
  request.set_into(put({1, 2}));
  expect_status(copy(request, same), grpc::StatusCode::INVALID_ARGUMENT, "COPY_SHAPE",
                "the tensor to overwrite is float32 (2,), but the one to copy is float32 (1,)");
}

TEST_F(Resident, ACallRunsWhereItIsAsked) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  v1::RunRequest request;
  request.set_kernel_id(kernel);
  *request.add_arguments() = inline_argument({1});
  *request.add_arguments() = output_argument(true);
  request.set_device("cuda:1");
  v1::RunResponse response;
  ASSERT_TRUE(service_->run(request, response).ok());
  EXPECT_EQ(response.results(0).device(), "cuda:1");
  EXPECT_EQ(get(response.results(0).tensor()), (std::vector<float>{2}));
  request.set_device("cpu");
  expect_status(service_->run(request, response), grpc::StatusCode::INVALID_ARGUMENT,
                "OTHER_TARGET", "inc was compiled for cuda, which cpu:0 does not run");
  request.set_device("cuda:7");
  expect_status(service_->run(request, response), grpc::StatusCode::UNAVAILABLE, "NO_DEVICE",
                "there is no device cuda:7 here; kiln devices lists those there are");
}

TEST_F(Resident, APassOverADataSetCopiesNothingOfIt) {
  v1::RunProgramRequest request = run_of(v1::VALUE_KIND_BATCH, put({1, 2, 3}));
  request.set_batch(1);
  request.set_epochs(3);  // each of which the device is asked for by itself
  const fake::Numbers before = counted();
  v1::ProgramResult result;
  ASSERT_TRUE(run(request, result).ok());
  EXPECT_EQ(floats_of(result.outputs(0).data()), (std::vector<float>{4}));
  EXPECT_EQ(counted().launches, before.launches + 9);
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes + 3 * 4);  // the output
}

TEST_F(Resident, AProgramRunsWhereItsParametersLie) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string w = put({1}, "cuda:1");
  const std::string y = put({0}, "cuda:1");
  v1::RunProgramRequest request = run_of(v1::VALUE_KIND_PARAMETER, w);
  request.set_steps(3);
  const fake::Numbers before = counted();
  v1::ProgramResult result;
  ASSERT_TRUE(run(request, result).ok());
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes + 4);  // what became of it
  ASSERT_TRUE(call(kernel, w, y).ok());
  EXPECT_EQ(counted().copied_bytes, before.copied_bytes + 4);
  EXPECT_EQ(get(w), (std::vector<float>{4}));
  EXPECT_EQ(get(y), (std::vector<float>{5}));
  // What a kernel computed on the device, the next steps begin with.
  ASSERT_TRUE(call(kernel, y, w).ok());
  ASSERT_TRUE(run(request, result).ok());
  EXPECT_EQ(get(w), (std::vector<float>{9}));
}

TEST_F(Resident, AProgramRunsWhereItIsAsked) {
  v1::RunProgramRequest request = run_of(v1::VALUE_KIND_INPUT, put({1}, "cpu:0"));
  request.set_device("cuda:1");
  request.set_keep(true);
  v1::ProgramResult result;
  ASSERT_TRUE(run(request, result).ok());
  EXPECT_EQ(result.outputs(0).device(), "cuda:1");
  EXPECT_EQ(get(result.outputs(0).tensor()), (std::vector<float>{2}));
  request.set_device("cpu");
  expect_status(run(request, result), grpc::StatusCode::INVALID_ARGUMENT, "OTHER_TARGET",
                "counting was compiled for cuda, which cpu:0 does not run");
  request.set_device("cuda:7");
  expect_status(run(request, result), grpc::StatusCode::UNAVAILABLE, "NO_DEVICE",
                "there is no device cuda:7 here; kiln devices lists those there are");
}

TEST_F(Resident, AFaultOfAKernelIsToldWithWhatRan) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string faulty = service_->kernel(for_cuda(add_one_of("fault", 1)));
  const std::string x = put({1});
  const std::string y = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  const grpc::Status status = call(faulty, x, y);
  expect_status(status, grpc::StatusCode::UNAVAILABLE, "DEVICE_FAULT",
                "the CUDA driver could not run fault: an illegal memory access was encountered "
                "(CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  ASSERT_EQ(detail_of(status).notes_size(), 1);
  EXPECT_EQ(detail_of(status).notes(0),
            "the last launches, latest first: fault <<<(1, 1, 1), (1, 1, 1), 0>>>, "
            "add_one <<<(1, 1, 1), (1, 1, 1), 0>>>");
  ASSERT_TRUE(eventually([&] { return call(kernel, x, y).ok(); }));
  EXPECT_EQ(get(y), (std::vector<float>{2}));
}

TEST_F(Resident, AKernelThatOftenBreaksTheDeviceIsRefused) {
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string faulty = service_->kernel(for_cuda(add_one_of("fault", 1)));
  const std::string x = put({1});
  const std::string y = put({0});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return call(kernel, x, y).ok(); }));
    EXPECT_EQ(call(faulty, x, y).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  const grpc::Status status = call(faulty, x, y);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  ASSERT_TRUE(eventually([&] { return call(kernel, x, y).ok(); }));
}

TEST_F(Resident, ADeviceThatGoesAwayIsSaidToBeGoneAndComesBack) {
  EngineOptions options = usual_options();
  options.times.restart_grace = std::chrono::milliseconds(300);
  restart_with(options);
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  ASSERT_TRUE(call(kernel, x, y).ok());
  ::setenv("FAKE_CUDA_DEVICES", "0", 1);
  ::kill(service_->engine().pid_of("cuda:0"), SIGKILL);
  grpc::Status status;
  ASSERT_TRUE(eventually([&] {
    status = call(kernel, x, y);
    return status.error_message().starts_with("cuda:0 was here");
  }));
  expect_status(status, grpc::StatusCode::UNAVAILABLE, "DEVICE_GONE",
                "cuda:0 was here but is not any more, and is looked for again: this host has an "
                "NVIDIA driver but no usable GPU (no CUDA-capable device is detected); check "
                "nvidia-smi, and in a container that the GPUs were passed in (--gpus all)");
  ::setenv("FAKE_CUDA_DEVICES", "2", 1);
  ASSERT_TRUE(eventually([&] { return call(kernel, x, y).ok(); }));
  EXPECT_EQ(get(y), (std::vector<float>{2}));
}

TEST_F(Resident, ARefusedLaunchIsAnErrorOfItsCallAlone) {
  ::setenv("FAKE_CUDA_LAUNCH", "701", 1);
  restart_with(usual_options());
  ::unsetenv("FAKE_CUDA_LAUNCH");
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  const int pid = service_->engine().pid_of("cuda:0");
  expect_status(call(kernel, x, y), grpc::StatusCode::RESOURCE_EXHAUSTED, "LAUNCH_RESOURCES",
                "the CUDA driver could not start inc: a block needs more registers or shared "
                "memory than the device has; use smaller blocks");
  EXPECT_EQ(service_->engine().pid_of("cuda:0"), pid);
  EXPECT_EQ(get(y), (std::vector<float>{0}));
}

TEST_F(Resident, ADeadlineEndsAKernelThatDoesNotEnd) {
  const std::string endless = service_->kernel(for_cuda(add_one_of("hang", 1)));
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::string x = put({1});
  const std::string y = put({0});
  v1::RunRequest request;
  request.set_kernel_id(endless);
  *request.add_arguments() = tensor_argument(x);
  *request.add_arguments() = tensor_argument(y);
  v1::RunResponse response;
  EXPECT_EQ(service_->run(request, response, std::chrono::milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(call(kernel, x, y).ok());
  EXPECT_EQ(get(y), (std::vector<float>{2}));
}

TEST_F(Resident, MemoryOfFreedOnesIsFree) {
  ::setenv("FAKE_CUDA_MEMORY", "4096", 1);
  restart_with(usual_options());
  ::unsetenv("FAKE_CUDA_MEMORY");
  const std::string kernel = service_->kernel(for_cuda(add_one("inc")));
  const std::vector<float> values(500, 1.0f);  // two of them fill the device
  for (int i = 0; i < 5; ++i) {
    // What was freed may be dropped only by the call.
    const std::string x = begin_put(values);
    const std::string y = begin_put(values);
    ASSERT_TRUE(call(kernel, x, y).ok()) << i;
    grpc::ClientContext context;
    v1::FreeRequest request;
    request.add_tensors(x);
    request.add_tensors(y);
    v1::FreeResponse response;
    ASSERT_TRUE(service_->tensors->Free(&context, request, &response).ok());
  }
  const std::string x = begin_put(values);
  const std::string y = begin_put(values);
  ASSERT_TRUE(call(kernel, x, y).ok());
  expect_status(call(kernel, begin_put(values), y), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "DEVICE_MEMORY", "cuda:0 has no room for 2000 bytes: 4000 of its 4096 are in use");
}

}  // namespace
}  // namespace kiln::server

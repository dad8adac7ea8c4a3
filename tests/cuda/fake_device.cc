// Reaches into the fake driver that the runtime has opened.
#include "tests/cuda/fake_device.h"

#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

template <typename Function>
Function* driver_function(const char* name) {
  void* driver = dlopen(std::getenv("KILN_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(driver, name));
}

}  // namespace

const KernelNames kAddOneNames = {"add_one", {"x", "y"}, {"n"}, {"x", "y"}};

std::shared_ptr<Artifact> add_one() {
  auto artifact = std::make_shared<Artifact>();
  artifact->target = TargetKind::Cuda;
  artifact->arch = "sm_90";
  artifact->code = "fake cubin";
  artifact->size_count = 1;
  const SizeExpr n = SizeExpr::scalar(0);
  artifact->parameters = {{DType::Float32, {n}, false}, {DType::Float32, {n}, true}};
  const SizeExpr block = SizeExpr::constant(32);
  artifact->variants.resize(1);
  artifact->variants[0].launches = {
      {"add_one",
       {SizeExpr::binary(SizeExpr::Op::FloorDiv,
                         SizeExpr::binary(SizeExpr::Op::Add, n, SizeExpr::constant(31)), block)},
       {block}}};
  artifact->checks = {{.stage = 1, .tensor = 0, .dimension = 0}};
  return artifact;
}

std::shared_ptr<Artifact> add_one_twice() {
  std::shared_ptr<Artifact> artifact = add_one();
  std::vector<Launch>& launches = artifact->variants[0].launches;
  launches.push_back(launches[0]);
  return artifact;
}

AddOneCall::AddOneCall(Device& device, std::vector<float> x,
                       const std::shared_ptr<Artifact>& artifact)
    : device_(device),
      x_(std::move(x)),
      bytes_(static_cast<int64_t>(x_.size() * sizeof(float))),
      kernel_(device.load(artifact)),
      in_(device.allocate(bytes_)),
      out_(device.allocate(bytes_)) {
  device_.copy_in(in_->data(), x_.data(), bytes_);
}

double AddOneCall::run() {
  const ArgumentSlot slot{true, {DType::Float32, {static_cast<int64_t>(x_.size())}, {}}};
  const std::vector<ArgumentSlot> slots = {slot, slot};
  const BoundCall bound = bind_arguments(kernel_->artifact(), kAddOneNames, slots, {});
  void* const tensors[] = {in_->data(), out_->data()};
  return device_.run(*kernel_, {.tensors = tensors, .bound = &bound, .names = &kAddOneNames});
}

std::vector<float> AddOneCall::y() const {
  std::vector<float> y(x_.size());
  device_.copy_out(y.data(), out_->data(), bytes_);
  return y;
}

std::vector<float> add_one_on(Device& device, const std::vector<float>& x) {
  AddOneCall call(device, x);
  call.run();
  return call.y();
}

Setting::Setting(const char* variable, const std::string& value) : variable_(variable) {
  setenv(variable_, value.c_str(), 1);
}
Setting::~Setting() { unsetenv(variable_); }

int64_t counted(const char* counter) {
  return driver_function<long long(const char*)>("fake_cuda_count")(counter);
}
int handed_out() { return driver_function<int()>("fake_cuda_handed_out")(); }
int live_allocations() { return driver_function<int()>("fake_cuda_live_allocations")(); }
NewProcessAfterwards::~NewProcessAfterwards() { driver_function<void()>("fake_cuda_restart")(); }

}  // namespace kiln::testing

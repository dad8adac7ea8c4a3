#include <thread>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

/// Variants of kernels for sizes that come back, made after three calls.
class Specialise : public ServiceTest {
 protected:
  Specialise() { start({.kernels = 2, .calls = 3}); }

  void start(const Specialiser::Options& specialisation) {
    EngineOptions options = usual_options();
    options.specialisation = specialisation;
    restart(options);
  }
  /// Calls of a kernel with so many elements.
  void call(const std::string& kernel, size_t size, int times) {
    for (int i = 0; i < times; ++i) {
      std::vector<float> output;
      const grpc::Status status = service_->run(kernel, std::vector<float>(size, 1), &output);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(output, std::vector<float>(size, 2));
    }
  }
  bool has_variants(int64_t count) {
    return eventually([&] { return service_->counter("specialised_kernels") == count; });
  }
  std::string report_of(const std::string& kernel) {
    grpc::ClientContext context;
    v1::InspectRequest request;
    request.set_kernel_id(kernel);
    v1::InspectResponse response;
    EXPECT_TRUE(service_->kernels->Inspect(&context, request, &response).ok());
    return response.report_json();
  }
};

TEST_F(Specialise, AKernelForSizesThatComeBackAndOnlyForThese) {
  const std::string kernel = service_->kernel(add_one("inc"));
  call(kernel, 5, 2);
  EXPECT_EQ(service_->counter("specialisations"), 0);
  call(kernel, 5, 1);
  ASSERT_TRUE(has_variants(1));
  EXPECT_EQ(service_->counter("specialised_runs"), 0);
  call(kernel, 5, 4);
  EXPECT_EQ(service_->counter("specialised_runs"), 4);
  call(kernel, 6, 1);
  EXPECT_EQ(service_->counter("specialised_runs"), 4);
  EXPECT_EQ(service_->counter("compiles"), 1);
  EXPECT_NE(report_of(kernel).find(R"("specialised":["n=5"])"), std::string::npos);
}

TEST_F(Specialise, KeepsTheLastUsedVariants) {
  const std::string kernel = service_->kernel(add_one("inc"));
  for (const size_t size : {5, 6}) {
    call(kernel, size, 3);
    ASSERT_TRUE(eventually(
        [&] { return service_->counter("specialisations") == static_cast<int64_t>(size) - 4; }));
  }
  call(kernel, 5, 1);  // so that 6 is the one to go
  call(kernel, 7, 3);
  ASSERT_TRUE(eventually([&] { return service_->counter("specialisations") == 3; }));
  EXPECT_EQ(service_->counter("specialised_kernels"), 2);
  EXPECT_EQ(service_->counter("dropped_variants"), 1);
  EXPECT_NE(report_of(kernel).find(R"("specialised":["n=5","n=7"])"), std::string::npos);
  call(kernel, 6, 2);  // which it has to earn again
  EXPECT_EQ(service_->counter("specialisations"), 3);
  call(kernel, 6, 1);
  EXPECT_TRUE(eventually([&] { return service_->counter("specialisations") == 4; }));
}

TEST_F(Specialise, LeavesKernelsWithoutSizesAlone) {
  const std::string kernel = service_->kernel(add_one_of("inc", 4));
  call(kernel, 4, 8);
  EXPECT_EQ(service_->counter("specialisations"), 0);
}

TEST_F(Specialise, CanBeTurnedOff) {
  start({.kernels = 0, .calls = 3});
  const std::string kernel = service_->kernel(add_one("inc"));
  call(kernel, 5, 8);
  EXPECT_EQ(service_->counter("specialisations"), 0);
  EXPECT_EQ(report_of(kernel).find("specialised"), std::string::npos);
}

TEST_F(Specialise, ServesCallsWhileAVariantIsCompiled) {
  const std::string kernel = service_->kernel(add_one("variant_waits"));
  call(kernel, 5, 3);
  ASSERT_TRUE(has_begun("variant_waits"));
  call(kernel, 5, 5);
  call(kernel, 6, 5);
  EXPECT_EQ(service_->counter("specialised_runs"), 0);
  let_go();
  EXPECT_TRUE(has_variants(1));
}

TEST_F(Specialise, GoesOnWithTheKernelItselfWhenAVariantDoesNotCompile) {
  const std::string kernel = service_->kernel(add_one("variant_fails"));
  call(kernel, 5, 8);
  std::this_thread::sleep_for(milliseconds(100));
  call(kernel, 5, 3);
  EXPECT_EQ(service_->counter("specialisations"), 0);
  EXPECT_EQ(service_->counter("failed_runs"), 0);
}

}  // namespace
}  // namespace kiln::server

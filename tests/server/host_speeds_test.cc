// What this host was measured at: kept for the daemons that come after, until the host starts
// again.
#include "server/tuning/host_speeds.h"

#include <fstream>

#include "kiln/v1/predict.grpc.pb.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

internal::HostSpeed speed_of(double gigahertz) {
  internal::HostSpeed speed;
  speed.set_gigahertz(gigahertz);
  speed.set_from_l3(20e9);
  return speed;
}

constexpr const char* kSetting = "znver4, 2 threads";

class KeptSpeed : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
};

TEST_F(KeptSpeed, OutlivesTheDaemonAndNotTheStartOfTheHost) {
  HostSpeeds(folder_.path(), "boot 1").keep(kSetting, speed_of(3));
  const HostSpeeds later(folder_.path(), "boot 1");
  ASSERT_TRUE(later.find(kSetting));
  EXPECT_EQ(later.find(kSetting)->gigahertz(), 3);
  EXPECT_EQ(later.find(kSetting)->from_l3(), 20e9);
  EXPECT_FALSE(later.find("znver4, 1 threads"));
  EXPECT_FALSE(HostSpeeds(folder_.path(), "boot 2").find(kSetting));
}

TEST_F(KeptSpeed, IsNotOfAHostThatCannotBeTold) {
  HostSpeeds speeds(folder_.path(), "");
  speeds.keep(kSetting, speed_of(3));
  EXPECT_FALSE(speeds.find(kSetting));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(KeptSpeed, IsMeasuredAgainWhereTheFileIsDamaged) {
  for (const char* text : {"", "{", "[]", "{\"gigahertz\": \"fast\"}", "{\"boot\": \"boot 1\"}"}) {
    std::ofstream(folder_.path() / "host-speed.json") << text;
    HostSpeeds speeds(folder_.path(), "boot 1");
    EXPECT_FALSE(speeds.find(kSetting)) << text;
    speeds.keep(kSetting, speed_of(4));
    EXPECT_EQ(HostSpeeds(folder_.path(), "boot 1").find(kSetting)->gigahertz(), 4) << text;
  }
}

TEST_F(KeptSpeed, ServesItsDaemonWhereItCannotBeWritten) {
  std::ofstream(folder_.path() / "file") << "no folder";
  HostSpeeds speeds(folder_.path() / "file", "boot 1");
  speeds.keep(kSetting, speed_of(4));
  EXPECT_EQ(speeds.find(kSetting)->gigahertz(), 4);
}

class HostSpeedOfService : public ServiceTest {
 protected:
  std::string surroundings() {
    const auto stub = v1::PredictionService::NewStub(service_->channel());
    v1::PredictRequest request;
    *request.mutable_kernel() = add_one("inc");
    (*request.mutable_sizes())["n"] = 8;
    v1::PredictResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->Predict(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.surroundings();
  }
  std::string described() {
    v1::DescribeResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(service_->daemon->Describe(&context, {}, &response).ok());
    return response.devices(0).description();
  }
};

// The fake worker measures 2 GHz wherever it is not told what was measured before.
TEST_F(HostSpeedOfService, IsMeasuredOnceAndShown) {
  EXPECT_EQ(described().find("measured on this host"), std::string::npos) << described();
  EXPECT_EQ(surroundings(), "2 GHz");
  EXPECT_NE(described().find("measured on this host: 2.00 GHz"), std::string::npos) << described();

  const std::filesystem::path path = folder_.path() / "host-speed.json";
  std::string text;
  std::getline(std::ifstream(path), text);
  const std::string kept = "\"gigahertz\":2";
  ASSERT_NE(text.find(kept), std::string::npos) << text;
  std::ofstream(path) << text.replace(text.find(kept), kept.size(), "\"gigahertz\":3");
  restart();
  EXPECT_NE(described().find("measured on this host: 3.00 GHz"), std::string::npos) << described();
  EXPECT_EQ(surroundings(), "3 GHz");
}

}  // namespace
}  // namespace kiln::server

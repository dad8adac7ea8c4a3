// Quotas of tenants: what the file of settings says of them, and the time of devices that they
// have.
#include "server/quotas.h"

#include <array>
#include <fstream>

#include <gtest/gtest.h>

#include "server/config.h"
#include "server/engine/device_time.h"
#include "tests/support/daemon.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

using std::chrono::seconds;
using testing::expect_error;

std::optional<Config> config_of(const std::string& text, int& exit_code) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "kilnd.toml").string();
  std::ofstream(path) << text;
  const std::array<const char*, 3> arguments = {"kilnd", "--config", path.c_str()};
  return read_config(3, arguments.data(), exit_code);
}

TEST(Quotas, AreReadByNameOverWhatHoldsForAll) {
  int exit_code = 0;
  const auto config = config_of(
      "[tenants.alice]\n"
      "jobs = 5\n"
      "device-seconds = 1.5\n"
      "[tenants.\"team b\"]\n"
      "tensor-bytes = 0\n"
      "[limits]\n"
      "tenant-jobs = 2\n"
      "tenant-tensor-bytes = 100\n"
      "tenant-queue = 7\n",
      exit_code);
  ASSERT_TRUE(config);
  const Quotas& quotas = config->engine.quotas;
  EXPECT_EQ(quotas.of("alice").jobs, 5U);
  EXPECT_EQ(quotas.of("alice").device_seconds, 1.5);
  EXPECT_EQ(quotas.of("alice").tensor_bytes, 100);
  EXPECT_EQ(quotas.of("team b").tensor_bytes, 0);
  EXPECT_EQ(quotas.of("team b").jobs, 2U);
  EXPECT_EQ(quotas.of("anybody").queue, 7U);
  EXPECT_EQ(quotas.of("anybody").device_seconds, 0);
}

TEST(Quotas, OfUnknownNamesAreRefused) {
  for (const char* const text : {"[tenants.alice]\nkernel = 3\n", "[tenants]\nalice = 3\n",
                                 "tenants = 3\n", "[tenants.alice]\njobs = -1\n"}) {
    int exit_code = 0;
    EXPECT_FALSE(config_of(text, exit_code)) << text;
    EXPECT_EQ(exit_code, 2) << text;
  }
}

TEST(DeviceTime, IsHadAsItComes) {
  DeviceTime time(shared_quotas({.usual = {}, .named = {{"alice", {.device_seconds = 6}}}}));
  const Clock::time_point start{};
  time.require("alice", start);
  time.charge("alice", 9, start);
  time.charge("bob", 1000, start);
  time.require("bob", start);
  expect_error([&] { time.require("alice", start + seconds(20)); }, ErrorKind::ResourceExhausted,
               "the calls of this tenant have had devices for longer than the 6 s a minute that "
               "it may; the next may begin in 10.0 s");
  EXPECT_THROW(time.require("alice", start + seconds(29)), Error);
  time.require("alice", start + seconds(31));
}

TEST(DeviceTime, IsSavedUpForAMinute) {
  DeviceTime time(shared_quotas({.usual = {.device_seconds = 6}}));
  const Clock::time_point start{};
  time.require("alice", start);
  const Clock::time_point later = start + std::chrono::hours(10);
  time.charge("alice", 6.5, later);
  EXPECT_THROW(time.require("alice", later), Error);
  time.require("alice", later + seconds(6));
}

}  // namespace
}  // namespace kiln::server

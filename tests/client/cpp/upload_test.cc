// Large uploads to a service elsewhere: they go on where a connection broke off, and contents that
// are there are not sent again.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/breaking_way.h"
#include "tests/support/daemon.h"

namespace kiln::test {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

class Upload : public ::testing::Test {
 protected:
  /// 16 MiB.
  static Array counting() {
    Array array({4 * kMib});
    const auto values = array.values<float>();
    std::iota(values.begin(), values.end(), 0.0F);
    return array;
  }
  static bool is_same(const Array& a, const Array& b) {
    return a.bytes().size() == b.bytes().size() &&
           std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
  }

  testing::Daemon daemon_{{.program = KILND, .listen = "127.0.0.1:0"}};
};

TEST_F(Upload, GoesOnWhereItsConnectionBroke) {
  const BreakingWay way(daemon_.address(), {5 * kMib, 11 * kMib});
  const Connection connection = connect(way.address());
  const Array array = counting();
  const RemoteArray remote = connection.upload(array);
  EXPECT_TRUE(is_same(remote.download(), array));
  const std::map<std::string, std::int64_t> counters = connection.describe().counters;
  EXPECT_EQ(counters.at("resumed_uploads"), 2);
  EXPECT_EQ(counters.at("uploaded_bytes"), static_cast<std::int64_t>(array.bytes().size()));
}

TEST_F(Upload, IsNotSentWhereTheContentsAreThere) {
  const BreakingWay way(daemon_.address(), {});
  const Connection connection = connect(way.address());
  const Array array = counting();
  const RemoteArray first = connection.upload(array, {.by_digest = true});
  const std::int64_t sent = way.sent();
  const RemoteArray second = connection.upload(array, {.by_digest = true});
  EXPECT_LT(way.sent() - sent, kMib);
  EXPECT_NE(second.id(), first.id());
  EXPECT_TRUE(is_same(second.download(), array));
  EXPECT_EQ(connection.describe().counters.at("found_uploads"), 1);
}

}  // namespace
}  // namespace kiln::test

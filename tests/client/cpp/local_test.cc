// A service on the same host: arrays travel as memory, calls over a socket of their own.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/on_a_daemon.h"

namespace kiln::test {
namespace {

constexpr std::int64_t kLarge = 1'200'001;  // floats: several huge pages, and no whole number

/// What is mapped at this address: a line of /proc/self/maps.
std::string mapping_at(const void* place) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  std::string line;
  while (std::getline(maps, line)) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= address && address < end) return line;
  }
  return {};
}

bool is_shown(const Array& array) {
  return mapping_at(array.bytes().data()).find("memfd:kiln-arena") != std::string::npos;
}

class LocalService : public OnADaemon {
 protected:
  LocalService() { connection_.upload(counted(0, 4)); }  // from here on there is a session

  static Array counted(float from, std::int64_t size = kLarge) {
    Array array({size});
    std::iota(array.values<float>().begin(), array.values<float>().end(), from);
    return array;
  }
  static bool equal(const Array& a, const Array& b) {
    const auto x = a.values<float>();
    const auto y = b.values<float>();
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }
  Kernel plus() {
    const Expr n = var("n");
    const Tensor X = placeholder({n}, float32, "X");
    const Tensor Y = compute(
        {n}, [&](Expr i) { return X(i) + 1; }, "Y");
    return connection_.build({X, Y});
  }

  Connection connection_ = connect(daemon_->address());
};

TEST_F(LocalService, ResultsAreSeenWithoutACopy) {
  const Kernel f = plus();
  const Array result = f(counted(0));
  EXPECT_TRUE(is_shown(result));
  EXPECT_TRUE(equal(result, counted(1)));
  const RemoteArray kept = f.call_remote({counted(5)}).front();
  EXPECT_TRUE(is_shown(kept.download()));
  EXPECT_TRUE(equal(kept.download(), counted(6)));
}

TEST_F(LocalService, ArraysComeBackAsTheyWere) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4096},
                                  std::int64_t{4097}, std::int64_t{100'000}, kLarge}) {
    EXPECT_TRUE(equal(connection_.upload(counted(0, size)).download(), counted(0, size))) << size;
  }
}

TEST_F(LocalService, GivenArraysAreWritten) {
  const Kernel f = plus();
  for (const std::int64_t size : {std::int64_t{4}, std::int64_t{8000}, kLarge}) {
    const Array out({size});
    f(counted(0, size), out);
    EXPECT_TRUE(equal(out, counted(1, size))) << size;
  }
}

TEST_F(LocalService, WhatWasSeenIsASnapshotThatMayBeWritten) {
  const Kernel f = plus();
  const RemoteArray kept = f.call_remote({counted(0)}).front();
  const Array seen = kept.download();
  seen.values<float>()[0] = -1;  // of this process alone
  f(counted(10), kept);
  EXPECT_EQ(seen.values<float>()[0], -1);
  EXPECT_EQ(seen.values<float>()[1], 2);
  EXPECT_TRUE(equal(kept.download(), counted(11)));
}

TEST_F(LocalService, ErrorsAreTheSame) {
  const Kernel f = plus();
  expect_client_error([&] { f(counted(0, 4), counted(0, 5)); }, ErrorKind::InvalidArgument,
                      "ARGUMENT_SHAPE",
                      "argument Y of the kernel: dimension 0 is 5, but must be 4 (n, from "
                      "dimension 0 of X)");
}

TEST_F(LocalService, ADeadlineEndsACall) {
  const Kernel f = endless(connection_);
  EXPECT_THROW(f.call({counted(0, 4)}, {.sizes = {{"m", std::int64_t{1} << 40}},
                                        .deadline = std::chrono::milliseconds(200)}),
               DeadlineExceeded);
  EXPECT_EQ(Array(f.call({counted(0, 1)}, {.sizes = {{"m", 1}}})).values<float>()[0], 0);
}

TEST_F(LocalService, CancellingEndsACall) {
  const Kernel f = endless(connection_);
  Future future = f.submit_call({counted(0, 4)}, {.sizes = {{"m", std::int64_t{1} << 40}}});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  future.cancel();
  EXPECT_THROW(future.get(), Cancelled);
  EXPECT_EQ(Array(f.call({counted(0, 1)}, {.sizes = {{"m", 1}}})).values<float>()[0], 0);
}

TEST_F(LocalService, ThreadsHaveCallsOfTheirOwn) {
  const Kernel f = plus();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, from = static_cast<float>(1000 * i)] {
      const Array input = counted(from, 100'000);
      for (int round = 0; round < 20; ++round)
        EXPECT_TRUE(equal(f(input), counted(from + 1, 100'000)));
    });
  }
}

TEST_F(LocalService, NoDescriptorsAreLeft) {
  const auto open = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const Kernel f = plus();
  const auto use = [&] {
    for (int i = 0; i < 20; ++i)
      f(counted(0));
  };
  use();
  const auto before = open();
  use();
  EXPECT_LE(open(), before + 2);
}

TEST(RemoteService, ArraysTravelAsBytes) {
  const testing::Daemon daemon({.program = KILND, .listen = "127.0.0.1:0"});
  const Connection connection = connect(daemon.address());
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{262'144}, std::int64_t{262'145}, kLarge}) {
    Array values({size});
    std::iota(values.values<float>().begin(), values.values<float>().end(), 0.0F);
    const Array back = connection.upload(values).download();
    EXPECT_TRUE(std::equal(values.bytes().begin(), values.bytes().end(), back.bytes().begin(),
                           back.bytes().end()))
        << size;
  }
}

}  // namespace
}  // namespace kiln::test

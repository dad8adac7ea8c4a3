// Waiting for packets that follow each other closely, and for ones that do not.
#include "client/cpp/packet_wait.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln::detail {
namespace {

class PacketWaits : public ::testing::Test {
 protected:
  PacketWaits() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_.data()), 0); }
  ~PacketWaits() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  /// What the first byte of the next packet is; -1 without one.
  int next() {
    unsigned char byte = 0;
    iovec body{&byte, 1};
    msghdr header{};
    header.msg_iov = &body;
    header.msg_iovlen = 1;
    return wait_.receive(ends_[0], header, 0) == 1 ? byte : -1;
  }
  void send(unsigned char byte) { EXPECT_EQ(::send(ends_[1], &byte, 1, 0), 1); }

  std::array<int, 2> ends_{};
  PacketWait wait_;
};

TEST_F(PacketWaits, GivesAllInOrder) {
  std::thread sender([&] {
    for (int i = 0; i < 2000; ++i) {
      send(static_cast<unsigned char>(i % 251));
      // At once, within the time that it looks, and later.
      if (i % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 3 == 1 ? 20 : 400));
    }
  });
  for (int i = 0; i < 2000; ++i)
    ASSERT_EQ(next(), i % 251);
  sender.join();
}

TEST_F(PacketWaits, EndsWithTheOtherSide) {
  send(1);
  send(2);
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(next(), 2);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::shutdown(ends_[1], SHUT_RDWR);
  });
  EXPECT_EQ(next(), -1);
  other.join();
}

TEST_F(PacketWaits, KeepsTheSocketsLimit) {
  const timeval limit{0, 50'000};
  ASSERT_EQ(::setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  send(1);
  EXPECT_EQ(next(), 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(next(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(45));
}

}  // namespace
}  // namespace kiln::detail

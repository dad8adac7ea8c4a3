#include "server/engine/request_memo.h"

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

TEST(RequestMemo, KnowsTheKernelOfARequest) {
  RequestMemo memo;
  EXPECT_EQ(memo.find("a"), std::nullopt);
  memo.put("a", "kernel 1");
  memo.put("b", "kernel 2");
  EXPECT_EQ(memo.find("a"), "kernel 1");
  memo.put("a", "kernel 3");
  EXPECT_EQ(memo.find("a"), "kernel 3");
  EXPECT_EQ(memo.find("b"), "kernel 2");
}

TEST(RequestMemo, ForgetsRatherThanGrows) {
  RequestMemo memo(100);
  memo.put(std::string(60, 'a'), "kernel 1");
  memo.put(std::string(60, 'b'), "kernel 2");
  EXPECT_EQ(memo.find(std::string(60, 'a')), std::nullopt);
  EXPECT_EQ(memo.find(std::string(60, 'b')), "kernel 2");
  memo.put(std::string(200, 'c'), "kernel 3");
  EXPECT_EQ(memo.find(std::string(200, 'c')), std::nullopt);
  EXPECT_EQ(memo.find(std::string(60, 'b')), "kernel 2");
}

}  // namespace
}  // namespace kiln::server

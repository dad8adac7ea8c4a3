#include "server/engine/request_memo.h"

#include <gtest/gtest.h>

#include "server/engine/kernel_table.h"

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

KernelEntry entry_of(const std::string& id, size_t request_bytes) {
  KernelEntry entry;
  entry.id = id;
  entry.compiled = std::make_shared<const CachedArtifact>(
      CachedArtifact{.form = id, .bytes = std::string(100, 'b'), .artifact = nullptr});
  entry.request = std::string(request_bytes, 'r');
  return entry;
}

TEST(KernelTable, IsBoundedByNumberAndByWhatItsEntriesKeepAlive) {
  KernelTable table({.kernels = 4, .bytes = 10'000});
  for (const std::string id : {"a", "b", "c", "d", "e"})
    table.put(entry_of(id, 100));
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_NE(table.find("b"), nullptr);  // now the last used one
  table.put(entry_of("large", 9'000));
  EXPECT_EQ(table.find("c"), nullptr);
  EXPECT_NE(table.find("b"), nullptr);
  EXPECT_NE(table.find("large"), nullptr);
  table.put(entry_of("too large", 20'000));
  EXPECT_EQ(table.find("large"), nullptr);
  EXPECT_NE(table.find("too large"), nullptr);
}

TEST(KernelTable, WhoAsksForManyPushesOutItsOwn) {
  KernelTable table(
      {.kernels = 4, .quotas = shared_quotas({.usual = {.kernels = 2}}), .bytes = 10'000});
  const auto put = [&](const std::string& tenant, const std::string& id) {
    KernelEntry entry = entry_of(id, 100);
    entry.tenant = tenant;
    table.put(std::move(entry));
  };
  put("bob", "b");
  for (const std::string id : {"a1", "a2", "a3", "a4"})
    put("alice", id);
  EXPECT_NE(table.find("b"), nullptr);
  EXPECT_EQ(table.find("a1"), nullptr);
  EXPECT_EQ(table.find("a2"), nullptr);
  EXPECT_NE(table.find("a3"), nullptr);
  EXPECT_NE(table.find("a4"), nullptr);
}

}  // namespace
}  // namespace kiln::server

#include "server/engine/fair_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

class Fairness : public ::testing::Test {
 protected:
  void push(const std::string& tenant, const std::string& client, const std::string& item,
            Priority priority = Priority::Normal) {
    queue_.push({.principal = {tenant, client}, .priority = priority}, next_++,
                {tenant, client, item});
  }
  /// The items in the order in which they are served, each taking so long.
  std::vector<std::string> served(double seconds = 1) {
    std::vector<std::string> items;
    while (const auto item = queue_.pop()) {
      items.push_back(item->name);
      queue_.charge({item->tenant, item->client}, seconds);
    }
    return items;
  }

  struct Item {
    std::string tenant;
    std::string client;
    std::string name;
  };
  FairQueue<Item> queue_;
  uint64_t next_ = 1;
};

using Names = std::vector<std::string>;

TEST_F(Fairness, OneClientIsServedInItsOrder) {
  for (const char* name : {"1", "2", "3"})
    push("a", "x", name);
  EXPECT_EQ(served(), (Names{"1", "2", "3"}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(Fairness, TenantsTakeTurnsHoweverMuchOneAsksFor) {
  for (const char* name : {"a1", "a2", "a3", "a4"})
    push("a", "x", name);
  push("b", "y", "b1");
  push("b", "y", "b2");
  EXPECT_EQ(queue_.size_of("a"), 4U);
  EXPECT_EQ(served(), (Names{"a1", "b1", "a2", "b2", "a3", "a4"}));
}

TEST_F(Fairness, ClientsOfATenantTakeTurnsWithinItsShare) {
  for (const char* name : {"x1", "x2", "x3"})
    push("a", "x", name);
  push("a", "y", "y1");
  push("b", "z", "z1");
  push("b", "z", "z2");
  EXPECT_EQ(served(), (Names{"x1", "z1", "y1", "z2", "x2", "x3"}));
}

TEST_F(Fairness, TimeCountsAndNotCalls) {
  for (const char* name : {"a1", "a2", "a3"})
    push("a", "x", name);
  for (const char* name : {"b1", "b2", "b3", "b4"})
    push("b", "y", name);
  Names order;
  while (const auto item = queue_.pop()) {
    order.push_back(item->name);
    queue_.charge({item->tenant, item->client}, item->tenant == "a" ? 3 : 1);
  }
  EXPECT_EQ(order, (Names{"a1", "b1", "b2", "b3", "a2", "b4", "a3"}));
}

TEST_F(Fairness, WhoAskedForNothingHasNoClaimOnThatTime) {
  for (int i = 0; i < 10; ++i)
    push("a", "x", "before");
  served();
  push("b", "y", "b1");
  push("a", "x", "a1");
  push("b", "y", "b2");
  push("a", "x", "a2");
  push("b", "y", "b3");
  EXPECT_EQ(served(), (Names{"b1", "a1", "b2", "a2", "b3"}));
}

TEST_F(Fairness, WhoHasHadMuchIsNotOvertakenForEver) {
  push("a", "old", "long");
  push("a", "old", "last");
  push("a", "new 0", "short");
  int served = 0;
  for (int i = 1; served < 100; ++i) {
    const auto item = queue_.pop();
    if (item->name == "last") break;
    ++served;
    queue_.charge({item->tenant, item->client}, item->name == "long" ? 10 : 1);
    // Each who comes has had nothing yet.
    push("a", "new " + std::to_string(i), "short");
  }
  EXPECT_LT(served, 40);
}

TEST_F(Fairness, ThoseWhoAreGoneAreForgotten) {
  push("a", "x", "1");
  for (int i = 0; i < 1000; ++i) {
    push("a", std::to_string(i), "each another client");
    const auto item = queue_.pop();
    queue_.charge({item->tenant, item->client}, 1);
  }
  EXPECT_LT(queue_.clients(), 5U);
}

TEST_F(Fairness, WhoMayNotGoIsLeftForLater) {
  push("a", "x", "x1");
  push("a", "y", "y1");
  push("b", "z", "z1");
  const auto not_x = [](const Principal& who, const Item&) { return who.client != "x"; };
  EXPECT_EQ(queue_.pop(not_x)->name, "y1");
  EXPECT_EQ(queue_.pop(not_x)->name, "z1");
  EXPECT_FALSE(queue_.any(not_x));
  EXPECT_FALSE(queue_.pop(not_x));
  EXPECT_EQ(queue_.pop()->name, "x1");
}

TEST_F(Fairness, UrgentCallsOfATenantComeBeforeItsOthers) {
  push("a", "x", "low", Priority::Low);
  push("a", "x", "normal");
  push("a", "y", "high", Priority::High);
  push("b", "z", "other", Priority::Low);
  EXPECT_EQ(served(), (Names{"high", "other", "normal", "low"}));
}

TEST_F(Fairness, WhatIsTakenIsNotServed) {
  push("a", "x", "1");
  push("a", "x", "2");
  push("b", "y", "3");
  EXPECT_EQ(queue_.take(2)->name, "2");
  EXPECT_FALSE(queue_.take(2));
  EXPECT_EQ(queue_.take_if([](uint64_t, const Item& item) { return item.tenant == "b"; })->name,
            "3");
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(served(), Names{"1"});
}

}  // namespace
}  // namespace kiln::server

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "server/call.h"

namespace kiln::server {

/// What waits, and whose turn it is: of the tenant that has had the least; there of the client with
/// the most urgent item, or else the one that has had the least; of a client the most urgent, then
/// the oldest. Who comes back after a while has no claim on the time in which it asked for nothing,
/// and who waits is not overtaken for ever by those who come (virtual time as in weighted fair
/// queueing, tags at the start as in Goyal, Vin and Cheng, 1996). Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  /// `number` grows with time and is the item's own; one that is put back keeps it, and its place.
  void push(const Caller& caller, uint64_t number, Item item) {
    Tenant& tenant = tenant_of(caller.principal);
    if (tenant.waiting == 0) tenant.had = std::max(tenant.had, now_);
    Client& client = client_of(tenant, caller.principal);
    if (client.items.empty()) client.had = std::max(client.had, tenant.now);
    client.items.emplace(Rank{-static_cast<int>(caller.priority), number}, std::move(item));
    ++tenant.waiting;
    ++size_;
  }

  std::optional<Item> pop() {
    return pop([](const Principal&, const Item&) { return true; });
  }
  /// Of those clients alone whose first item `may_go(principal, item)`.
  template <typename MayGo>
  std::optional<Item> pop(const MayGo& may_go) {
    const auto [tenant, client] = next(may_go);
    if (tenant == nullptr) return std::nullopt;
    now_ = std::max(now_, tenant->had);
    tenant->now = std::max(tenant->now, client->had);
    return take_out(*tenant, *client, client->items.begin());
  }
  /// Whether pop() would find one.
  template <typename MayGo>
  bool any(const MayGo& may_go) {
    return next(may_go).first != nullptr;
  }

  /// What was popped took so long.
  void charge(const Principal& who, double seconds) {
    // Calls that take no time at all alternate, too.
    const double taken = std::max(seconds, 1e-5);
    Tenant& tenant = tenant_of(who);
    Client& client = client_of(tenant, who);
    tenant.had += taken;
    client.had += taken;
    now_ += taken / active(tenants_, tenant);
    tenant.now += taken / active(tenant.clients, client);
    forget_idle();
  }

  /// The item with this number; nothing when it does not wait.
  std::optional<Item> take(uint64_t number) {
    return take_if([&](uint64_t each, const Item&) { return each == number; });
  }
  /// The first that `condition(number, item)` holds of.
  template <typename Condition>
  std::optional<Item> take_if(const Condition& condition) {
    for (auto& [name, tenant] : tenants_) {
      for (auto& [address, client] : tenant.clients) {
        for (auto at = client.items.begin(); at != client.items.end(); ++at) {
          if (condition(at->first.second, at->second)) return take_out(tenant, client, at);
        }
      }
    }
    return std::nullopt;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t size_of(const std::string& tenant) const {
    const auto at = tenants_.find(tenant);
    return at == tenants_.end() ? 0 : at->second.waiting;
  }
  /// Clients of whom something is remembered.
  size_t clients() const {
    size_t count = 0;
    for (const auto& [name, tenant] : tenants_)
      count += tenant.clients.size();
    return count;
  }

 private:
  using Rank = std::pair<int, uint64_t>;  // urgency, age
  struct Client {
    double had = 0;  // seconds of service, counted from the virtual time when it came
    std::map<Rank, Item> items;
    bool waits() const { return !items.empty(); }
  };
  struct Tenant {
    double had = 0;
    double now = 0;  // virtual time among its clients
    size_t waiting = 0;
    std::map<std::string, Client> clients;
    bool waits() const { return waiting != 0; }
  };

  Tenant& tenant_of(const Principal& who) {
    return tenants_.try_emplace(who.tenant, Tenant{.had = now_}).first->second;
  }
  static Client& client_of(Tenant& tenant, const Principal& who) {
    return tenant.clients.try_emplace(who.client, Client{.had = tenant.now}).first->second;
  }

  template <typename MayGo>
  static Client* next_of(const std::string& name, Tenant& tenant, const MayGo& may_go) {
    const auto key = [](const Client& client) {
      const Rank& first = client.items.begin()->first;
      return std::tuple(first.first, client.had, first.second);
    };
    Client* best = nullptr;
    for (auto& [address, client] : tenant.clients) {
      const bool is_better = client.waits() && (best == nullptr || key(client) < key(*best));
      if (is_better && may_go({name, address}, client.items.begin()->second)) best = &client;
    }
    return best;
  }
  template <typename MayGo>
  std::pair<Tenant*, Client*> next(const MayGo& may_go) {
    const auto key = [](const Tenant& tenant, const Client& client) {
      return std::pair(tenant.had, client.items.begin()->first.second);
    };
    std::pair<Tenant*, Client*> best = {nullptr, nullptr};
    for (auto& [name, tenant] : tenants_) {
      Client* const client = next_of(name, tenant, may_go);
      if (client == nullptr) continue;
      if (best.first == nullptr || key(tenant, *client) < key(*best.first, *best.second))
        best = {&tenant, client};
    }
    return best;
  }

  Item take_out(Tenant& tenant, Client& client, typename std::map<Rank, Item>::iterator at) {
    Item item = std::move(at->second);
    client.items.erase(at);
    --tenant.waiting;
    --size_;
    return item;
  }

  /// Among how many the time is shared: those who wait, and the one that was served.
  template <typename Group, typename Member>
  static double active(const Group& group, const Member& served) {
    const auto waiting = std::count_if(group.begin(), group.end(),
                                       [](const auto& each) { return each.second.waits(); });
    return static_cast<double>(waiting) + (served.waits() ? 0 : 1);
  }

  /// Those who wait for nothing and owe nothing are as good as new.
  void forget_idle() {
    if (empty()) {
      tenants_.clear();
      now_ = 0;
      return;
    }
    for (auto& each : tenants_) {
      const double now = each.second.now;
      std::erase_if(each.second.clients, [&](const auto& client) {
        return !client.second.waits() && client.second.had <= now;
      });
    }
    std::erase_if(tenants_, [&](const auto& tenant) {
      return !tenant.second.waits() && tenant.second.had <= now_;
    });
  }

  std::map<std::string, Tenant> tenants_;
  double now_ = 0;  // virtual time among tenants
  size_t size_ = 0;
};

}  // namespace kiln::server

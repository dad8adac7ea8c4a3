// Which versions work together: "0.4.1" and "0.5.0" do, "0.4.1" and "0.6.0" do not.
#include "client/cpp/compatible.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// Major and minor.
std::optional<std::pair<int, int>> numbers(const std::string& version) {
  std::pair<int, int> found;
  if (std::sscanf(version.c_str(), "%d.%d", &found.first, &found.second) != 2) return std::nullopt;
  return found;
}

}  // namespace

void require_compatible(const std::string& client, const std::string& service,
                        const std::string& address) {
  const auto mine = numbers(client);
  const auto theirs = numbers(service);
  if (!mine || !theirs) return;
  if (mine->first == theirs->first && std::abs(mine->second - theirs->second) <= 1) return;
  fail(
      ErrorKind::Unsupported, "VERSION",
      "the daemon at {} has version {} and this client {}, but they may be one minor version apart "
      "at most: install {} here, or {} there",
      address, service, client, service, client);
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

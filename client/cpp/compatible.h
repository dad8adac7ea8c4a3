#pragma once

#include <string>

namespace kiln {
inline namespace client {
namespace detail {

/// Client and service work together when their major versions are the same and their minor versions
/// at most one apart. Throws Unsupported VERSION. A service that says no version is a build of its
/// own.
void require_compatible(const std::string& client, const std::string& service,
                        const std::string& address);

}  // namespace detail
}  // namespace client
}  // namespace kiln

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace kiln::server {

/// What a tenant may have at a time; 0: as much as all together.
struct Quota {
  int64_t tensor_bytes = 0;
  size_t kernels = 0;
  size_t jobs = 0;            // unfinished
  size_t queue = 0;           // calls that wait for one device
  double device_seconds = 0;  // of all devices, in a minute
};

/// The quotas of tenants: of those that the operator has named, and of everybody else.
struct Quotas {
  Quota usual;
  std::map<std::string, Quota> named;

  const Quota& of(const std::string& tenant) const {
    const auto at = named.find(tenant);
    return at == named.end() ? usual : at->second;
  }
};

/// The ones that all parts of a service go by.
using SharedQuotas = std::shared_ptr<const Quotas>;
inline SharedQuotas shared_quotas(Quotas quotas) {
  return std::make_shared<const Quotas>(std::move(quotas));
}

}  // namespace kiln::server

#pragma once

#include <optional>
#include <string>

#include "kiln/v1/service.pb.h"

namespace kiln::server {

/// A place that keeps artifacts longer than the daemon lives. It is never an error: what cannot be
/// read is a miss, what cannot be written is not kept. It may wait for a disk or a network, so it
/// is not for a thread that answers calls. Any other thread may use it.
class CacheLevel {
 public:
  virtual ~CacheLevel() = default;
  /// What answers call it.
  virtual v1::CacheLevel level() const = 0;
  /// The artifact's bytes, whole and of this form, or nothing.
  virtual std::optional<std::string> find(const std::string& key, const std::string& form) = 0;
  virtual void put(const std::string& key, const std::string& form,
                   const std::string& artifact) = 0;
  /// Deletes an entry whose contents turned out to be of no use.
  virtual void reject(const std::string& key, const std::string& why) = 0;
};

}  // namespace kiln::server

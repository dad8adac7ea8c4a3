// Tuning and predictions are for certain sizes, which a client gives by name.
#include "server/engine/given_sizes.h"

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::server {

std::vector<int64_t> given_sizes(const KernelNames& names,
                                 const std::map<std::string, int64_t>& given, std::string_view what,
                                 std::string_view otherwise) {
  std::vector<int64_t> sizes;
  for (const std::string& name : names.sizes) {
    const auto at = given.find(name);
    if (at == given.end()) {
      fail(ErrorKind::InvalidArgument, "SIZE",
           "{} for certain sizes, but {} is not given; give each size{}", what, name, otherwise);
    }
    if (at->second < 0) {
      fail(ErrorKind::InvalidArgument, "SIZE", "the size {} of {} is {}; it must be 0 or more",
           name, called(names.kernel), at->second);
    }
    sizes.push_back(at->second);
  }
  return sizes;
}

}  // namespace kiln::server

#pragma once

#include <optional>
#include <string>

#include <kiln/array.h>

#include "client/cpp/link.h"

namespace kiln {
inline namespace client {
namespace detail {

/// Sends an array by UploadService (uploads.proto), which goes on where a connection broke off:
/// the tensor's id. `by_digest`: only where the service has not the contents. Nothing where the
/// service knows no such uploads.
std::optional<std::string> upload_by_name(Link& link, v1::TensorHeader header, const Array& array,
                                          bool by_digest, const CallControl& control);

}  // namespace detail
}  // namespace client
}  // namespace kiln

#pragma once

#include <grpcpp/support/status.h>

#include "runtime/core/error.h"

namespace kiln::server {

/// An error as gRPC carries it: the code of its kind, its message, and as details a
/// google.rpc.Status with ErrorInfo, RetryInfo where trying again helps, and kiln.v1.ErrorDetail.
/// Long texts are cut, so that the details fit the metadata of any client.
grpc::Status status_of(const Error& error);

}  // namespace kiln::server

#pragma once

#include <variant>

#include "kiln/v1/error.pb.h"
#include "runtime/core/error.h"

namespace kiln::server {

/// A value, or why there is none. What asynchronous work ends with.
template <typename T>
using Outcome = std::variant<T, Error>;

/// The exception being handled, as an Error: what is not one becomes ResourceExhausted (no memory)
/// or Internal, whose cause is logged and not told. The only place that catches everything.
Error current_error();

v1::ErrorDetail to_wire(const Error& error);
/// Nothing in `detail` is trusted: an unknown kind is Internal.
Error from_wire(const v1::ErrorDetail& detail);

}  // namespace kiln::server

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/call.h"
#include "server/engine/devices.h"
#include "server/tensors/sessions.h"

namespace kiln::server {

/// Copies of tensors, within a device, between devices, and to and from the host.
class TensorCopies {
 public:
  TensorCopies(TensorStore& tensors, Sessions& sessions, ArenaPool& arenas, Devices& devices)
      : tensors_(tensors), sessions_(sessions), arenas_(arenas), devices_(devices) {}

  /// Tells the id of the tensor that has the contents then. Throws InvalidArgument COPY_SHAPE,
  /// NotFound TENSOR, HandleLost, ResourceExhausted, Unavailable NO_DEVICE.
  void copy(const v1::CopyRequest& request, const Caller& caller,
            std::function<void(Outcome<std::string>)> done);

 private:
  struct Target {
    Tensor tensor;
    bool is_renewed = false;  // it gets other memory
  };
  Target target_of(const v1::CopyRequest& request, const Tensor& from, const Caller& caller);
  std::string complete(Target target);

  TensorStore& tensors_;
  Sessions& sessions_;
  ArenaPool& arenas_;
  Devices& devices_;
};

}  // namespace kiln::server

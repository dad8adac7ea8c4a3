// A copy takes the shortest way from where the contents are. What was uploaded lies in the host's
// memory, and goes to the device from there; what a device computed stays on it for a copy on the
// same device, and comes to the copy's own memory for one elsewhere, without a stop at the
// original.
//
//   result on cuda:0  ->  copy on cuda:0: on the device    on cuda:1: cuda:0 -> host -> cuda:1
#include "server/engine/tensor_copies.h"

#include <cstring>

#include "server/errors.h"

namespace kiln::server {

TensorCopies::Target TensorCopies::target_of(const v1::CopyRequest& request, const Tensor& from,
                                             const Caller& caller) {
  Target target;
  if (request.into().empty()) {
    sessions_.require(caller.principal.tenant, request.session());
    tensors_.require_room(caller.principal.tenant, from.bytes);
    target.tensor = from;
    target.tensor.id.clear();
    target.tensor.session = sessions_.owner(request.session());
    target.tensor.device = devices_.named(request.device()).name();
    target.tensor.slice = arenas_.allocate(from.bytes);
    return target;
  }
  target.tensor = *tensors_.find(caller.principal.tenant, request.into());
  if (target.tensor.type != from.type || target.tensor.shape != from.shape) {
    fail(ErrorKind::InvalidArgument, "COPY_SHAPE",
         "the tensor to overwrite is {} {}, but the one to copy is {} {}", target.tensor.type,
         shape_text(target.tensor.shape), from.type, shape_text(from.shape));
  }
  target.is_renewed = target.tensor.slice->arena()->is_frozen();
  if (target.is_renewed) target.tensor.slice = arenas_.allocate(from.bytes);
  return target;
}

std::string TensorCopies::complete(Target target) {
  if (target.tensor.id.empty()) return tensors_.add(std::move(target.tensor))->id;
  if (target.is_renewed) tensors_.renew(target.tensor.id, target.tensor.slice);
  return target.tensor.id;
}

void TensorCopies::copy(const v1::CopyRequest& request, const Caller& caller,
                        std::function<void(Outcome<std::string>)> done) {
  const std::shared_ptr<const Tensor> from =
      tensors_.find(caller.principal.tenant, request.tensor());
  if (from->id == request.into()) return done(from->id);
  require_not_lost(*from->slice);
  Target target = target_of(request, *from, caller);
  const std::shared_ptr<Slice> into = target.tensor.slice;
  DeviceQueue* const device = devices_.find(target.tensor.device);
  KILN_CHECK(device != nullptr);

  const std::shared_ptr<DeviceCopy> copy = from->slice->copy();
  DeviceQueue* const holder =
      copy != nullptr && copy->is_newer ? devices_.find(copy->device) : nullptr;
  const bool is_on_device = holder == device;
  const int64_t bytes = from->bytes;
  auto end = [this, from, device, into, bytes, is_on_device, target = std::move(target),
              done = std::move(done)](Outcome<std::monostate> outcome) {
    if (const Error* error = std::get_if<Error>(&outcome)) return done(*error);
    if (!is_on_device) device->stage(into, bytes);
    done(complete(target));
  };
  if (is_on_device) return device->copy_within(from->slice, into, std::move(end));
  if (holder != nullptr) return holder->fetch_into(from->slice, into, std::move(end));
  std::memcpy(into->data(), from->slice->data(), static_cast<size_t>(bytes));
  into->written();
  end(std::monostate{});
}

}  // namespace kiln::server

// Uploads, however they come. A tensor whose memory clients may see is not written: an upload that
// overwrites it gets other memory, and the tensor that memory once all is here.
#include "server/rpc/tensor_arrival.h"

#include <cstring>

namespace kiln::server {

namespace {

// The owner of arenas that have one tensor each, and are frozen once it is here.
constexpr const char* kFixed = "fixed contents";

void require_same_layout(const Tensor& tensor, const v1::TensorHeader& header) {
  const std::vector<int64_t> shape(header.shape().begin(), header.shape().end());
  if (static_cast<int>(tensor.type) == header.type() && tensor.shape == shape) return;
  fail(ErrorKind::InvalidArgument, "UPLOAD_SHAPE",
       "the tensor to overwrite is {} {}, but the upload is {} {}", tensor.type,
       shape_text(tensor.shape),
       dtype_from_number(header.type()) ? name_of(*dtype_from_number(header.type())) : "unknown",
       shape_text(shape));
}

}  // namespace

TensorArrival::TensorArrival(Engine& engine, const v1::TensorHeader& header, const Caller& caller,
                             Memory memory)
    : engine_(engine),
      tenant_(caller.principal.tenant),
      session_(header.session()),
      is_empty_(header.empty()),
      memory_(memory) {
  const bool is_given = memory == Memory::Given;
  if (header.into().empty()) {
    if (memory == Memory::Usual) {
      tensor_ = engine_.prepare_tensor(header, caller);
    } else {
      tensor_ = engine_.check_header(header, caller);
    }
    if (memory == Memory::Fixed) tensor_.slice = engine_.arenas().reserve_for(kFixed, bytes());
    if (is_empty_) filled_ = tensor_.bytes;
    return;
  }
  tensor_ = *engine_.tensors().find(tenant_, header.into());
  require_same_layout(tensor_, header);
  is_renewed_ = is_given || tensor_.slice->arena()->is_frozen();
  if (is_renewed_) tensor_.slice = is_given ? nullptr : engine_.arenas().reserve(tensor_.bytes);
}

void TensorArrival::belong_to(const std::string& session) {
  session_ = session;
  tensor_.session = engine_.sessions().owner(session);
}

uint8_t* TensorArrival::take(int64_t bytes) {
  if (bytes > tensor_.bytes - filled_) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
         "the upload has more than the {} bytes that its shape {} needs", tensor_.bytes,
         shape_text(tensor_.shape));
  }
  const int64_t offset = filled_;
  filled_ += bytes;
  engine_.counters().uploaded_bytes.fetch_add(bytes);
  engine_.arenas().use(*tensor_.slice, offset, bytes);
  return tensor_.slice->data() + offset;
}

void TensorArrival::append(std::string_view data) {
  if (data.empty()) return;
  std::memcpy(take(static_cast<int64_t>(data.size())), data.data(), data.size());
}

void TensorArrival::adopt(std::shared_ptr<Slice> slice, bool is_shared) {
  KILN_CHECK(slice->bytes() >= tensor_.bytes);
  tensor_.slice = std::move(slice);
  is_shared_ = is_shared;
  filled_ = tensor_.bytes;
}

std::string TensorArrival::complete(uint64_t number) {
  if (filled_ != tensor_.bytes) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
         "the upload has {} bytes, but its shape {} needs {}", filled_, shape_text(tensor_.shape),
         tensor_.bytes);
  }
  // A tensor of a session that has ended meanwhile would never be freed.
  engine_.sessions().require(tenant_, session_);
  engine_.counters().uploads.fetch_add(1);
  if (!is_shared_) tensor_.slice->written();
  if (memory_ == Memory::Fixed) KILN_CHECK(engine_.arenas().freeze(*tensor_.slice, kFixed));
  if (!is_empty_) engine_.stage(tensor_);
  if (tensor_.id.empty()) {
    if (number != 0 && session_.empty()) {
      fail(ErrorKind::InvalidArgument, "TENSOR_NUMBER",
           "tensor {} has a number but no session, and numbers are those of a session", number);
    }
    if (number != 0) tensor_.id = fmt::format("{}#{}", session_, number);
    tensor_.id = engine_.tensors().add(std::move(tensor_))->id;
  } else if (is_renewed_) {
    engine_.tensors().renew(tensor_.id, tensor_.slice);
  }
  return tensor_.id;
}

void write_header(const Tensor& tensor, v1::TensorHeader& header) {
  header.set_type(static_cast<v1::DataType>(tensor.type));
  header.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  header.set_device(tensor.device);
}

}  // namespace kiln::server

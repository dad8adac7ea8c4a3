// Uploads by name: what is here of one stays when its connection breaks, for as long as an upload
// may be silent. Contents with a digest are hashed as they come, lie in memory that nobody writes
// any more, and are found there by the next upload of the same tenant.
//
//   begin U, 64 MiB  ->  offset 0;  send 0..20 MiB, the connection breaks;  begin U  ->  offset 20
//   MiB;  send the rest  ->  tensor T;  begin V with the same digest  ->  tensor T2, nothing is
//   sent
#include "server/rpc/resumable_uploads.h"

#include <algorithm>

#include <openssl/evp.h>

namespace kiln::server {

namespace {

constexpr size_t kMostUnfinished = 64;  // of one tenant
constexpr size_t kMostFinished = 1024;  // of all tenants, that are remembered
constexpr size_t kLongestName = 64;
constexpr size_t kDigestBytes = 32;
// Smaller contents are not worth an arena of their own.
constexpr int64_t kLeastKnown = int64_t{64} << 10;

void require_sense(const v1::BeginUploadRequest& request) {
  const size_t name = request.upload().size();
  if (name == 0 || name > kLongestName) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_NAME",
         "the name of an upload has {} bytes, but must have 1 to {}", name, kLongestName);
  }
  if (request.header().empty() || !request.header().into().empty()) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER",
         "an upload that may be resumed makes a new tensor with contents; use Put or Upload for "
         "others");
  }
  const size_t digest = request.sha256().size();
  if (digest != 0 && digest != kDigestBytes) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_DIGEST",
         "the digest of the upload has {} bytes, but SHA-256 has {}", digest, kDigestBytes);
  }
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// What stays the same each time an upload is begun.
std::string form_of(const v1::BeginUploadRequest& request) {
  v1::BeginUploadRequest form = request;
  form.mutable_header()->clear_session();
  return form.SerializeAsString();
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  KILN_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(const uint8_t* data, int64_t bytes) {
  KILN_CHECK(EVP_DigestUpdate(context_.get(), data, static_cast<size_t>(bytes)) == 1);
}

std::string Sha256::digest() {
  std::string digest(kDigestBytes, '\0');
  unsigned size = 0;
  KILN_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                &size) == 1 &&
             size == kDigestBytes);
  return digest;
}

std::optional<int64_t> ResumableUpload::unfinished_bytes() const {
  const std::lock_guard lock(mutex_);
  if (!arrival_) return std::nullopt;
  return arrival_->bytes();
}

v1::UploadState ResumableUpload::renew(const std::string& session) {
  v1::UploadState state;
  const std::lock_guard lock(mutex_);
  ++sender_;  // what an earlier one still sends would move the offset
  if (arrival_) {
    arrival_->belong_to(session);
    state.set_offset(static_cast<uint64_t>(arrival_->filled()));
  } else {
    state.set_tensor(tensor_);
  }
  return state;
}

uint64_t ResumableUpload::take_over(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto filled = static_cast<uint64_t>(arrival_ ? arrival_->filled() : 0);
  if (offset != filled) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_OFFSET",
         "the upload is sent from byte {} on, but {} bytes of it are here; begin it again", offset,
         filled);
  }
  return ++sender_;
}

void ResumableUpload::require_sender(uint64_t sender) const {
  if (sender == sender_) return;
  fail(ErrorKind::Cancelled, "UPLOAD_TAKEN", "the upload goes on over another connection");
}

void ResumableUpload::append(uint64_t sender, const ReceivedChunk& chunk) {
  const std::lock_guard lock(mutex_);
  require_sender(sender);
  if (!arrival_) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES", "all bytes of the upload are here already");
  }
  uint8_t* const place = arrival_->take(chunk.bytes());
  chunk.copy_to(place);
  if (!digest_.empty()) hash_.add(place, chunk.bytes());
}

void ResumableUpload::check_digest() {
  if (digest_.empty() || arrival_->filled() != arrival_->bytes()) return;
  if (found_digest_.empty()) found_digest_ = hash_.digest();
  if (found_digest_ == digest_) return;
  fail(ErrorKind::InvalidArgument, "UPLOAD_DIGEST",
       "the contents that came have the digest {}, but the upload was begun with {}",
       hex(found_digest_), hex(digest_));
}

ResumableUpload::Completed ResumableUpload::complete(uint64_t sender) {
  const std::lock_guard lock(mutex_);
  require_sender(sender);
  Completed completed;
  if (arrival_) {
    check_digest();
    completed.bytes = arrival_->bytes();
    if (!digest_.empty()) completed.checked = arrival_->slice();
    tensor_ = arrival_->complete();
    arrival_.reset();  // and with it the memory, which is the tensor's now
  }
  completed.tensor = tensor_;
  return completed;
}

void ResumableUploads::Table::forget(const Key& key, const ResumableUpload* upload) {
  Ptr forgotten;  // its memory goes without the lock
  const std::lock_guard lock(mutex);
  const auto at = uploads.find(key);
  if (at == uploads.end() || at->second.get() != upload) return;
  forgotten = std::move(at->second);
  uploads.erase(at);
}

/// Who lost the reply asks once more soon, so the latest are remembered.
void ResumableUploads::Table::note_finished(const Key& key, const Ptr& upload) {
  std::pair<Key, std::weak_ptr<ResumableUpload>> oldest;
  {
    const std::lock_guard lock(mutex);
    finished.emplace_back(key, upload);
    if (finished.size() <= kMostFinished) return;
    oldest = std::move(finished.front());
    finished.pop_front();
  }
  if (const Ptr known = oldest.second.lock()) forget(oldest.first, known.get());
}

void ResumableUploads::require_place(const std::string& tenant, int64_t bytes) const {
  size_t count = 0;
  int64_t unfinished = 0;
  {
    const std::lock_guard lock(table_->mutex);
    for (auto at = table_->uploads.lower_bound(Key(tenant, ""));
         at != table_->uploads.end() && at->first.first == tenant; ++at) {
      const std::optional<int64_t> each = at->second->unfinished_bytes();
      if (!each) continue;
      ++count;
      unfinished += *each;
    }
  }
  if (count >= kMostUnfinished) {
    fail(ErrorKind::ResourceExhausted, "UPLOADS",
         "{} uploads of this tenant are unfinished already; one that nothing comes of is forgotten "
         "after a minute",
         count);
  }
  // Each of them will be a tensor.
  engine_.tensors().require_room(tenant, bytes, unfinished);
}

ResumableUploads::Ptr ResumableUploads::find_begun(const Key& key, const std::string& form) const {
  const std::lock_guard lock(table_->mutex);
  const auto at = table_->uploads.find(key);
  if (at == table_->uploads.end()) return nullptr;
  if (at->second->form() != form) {
    fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER",
         "upload {} was begun with another header or digest", key.second);
  }
  return at->second;
}

std::optional<v1::UploadState> ResumableUploads::go_on(const Key& key, ResumableUpload& upload,
                                                       const std::string& session) {
  v1::UploadState state = upload.renew(session);
  // As often as not the session broke with the connection, and the tensor would go with it.
  const bool is_gone =
      !state.tensor().empty() && !engine_.tensors().hand_over(key.first, state.tensor(), session);
  if (is_gone) return std::nullopt;
  upload.transfer->touch();
  engine_.counters().resumed_uploads.fetch_add(1);
  return state;
}

v1::UploadState ResumableUploads::begin(const v1::BeginUploadRequest& request,
                                        const Caller& caller) {
  require_sense(request);
  const Key key(caller.principal.tenant, request.upload());
  const std::string& session = request.header().session();
  engine_.sessions().require(key.first, session);
  std::string form = form_of(request);
  if (const Ptr begun = find_begun(key, form)) {
    if (const std::optional<v1::UploadState> state = go_on(key, *begun, session)) return *state;
    table_->forget(key, begun.get());
  }
  const Ptr upload = make(request, caller, std::move(form));
  upload->transfer =
      engine_.uploads().enter([table = std::weak_ptr(table_), key, upload = std::weak_ptr(upload)] {
        const auto open = table.lock();
        const Ptr idle = upload.lock();
        if (open && idle) open->forget(key, idle.get());
      });
  {
    const std::lock_guard lock(table_->mutex);
    table_->uploads[key] = upload;
  }
  if (!upload->unfinished_bytes()) table_->note_finished(key, upload);
  return upload->renew(session);
}

ResumableUploads::Ptr ResumableUploads::make(const v1::BeginUploadRequest& request,
                                             const Caller& caller, std::string form) {
  const v1::TensorHeader& header = request.header();
  const std::string& tenant = caller.principal.tenant;
  const int64_t bytes = engine_.check_header(header, caller).bytes;
  const bool may_be_known = !request.sha256().empty() && bytes >= kLeastKnown;
  if (may_be_known) {
    if (const auto slice = contents_.find(tenant, request.sha256(), bytes)) {
      TensorArrival arrival(engine_, header, caller, TensorArrival::Memory::Given);
      arrival.adopt(slice, true);
      engine_.counters().found_uploads.fetch_add(1);
      return std::make_shared<ResumableUpload>(std::nullopt, std::move(form), request.sha256(),
                                               arrival.complete());
    }
  }
  require_place(tenant, bytes);
  return std::make_shared<ResumableUpload>(
      TensorArrival(engine_, header, caller,
                    may_be_known ? TensorArrival::Memory::Fixed : TensorArrival::Memory::Usual),
      std::move(form), request.sha256(), "");
}

std::shared_ptr<ResumableUpload> ResumableUploads::find(const std::string& tenant,
                                                        const std::string& name) const {
  const std::lock_guard lock(table_->mutex);
  const auto at = table_->uploads.find(Key(tenant, name));
  if (at == table_->uploads.end()) {
    fail(ErrorKind::NotFound, "UPLOAD",
         "there is no upload {}, or nothing came of it for a while; begin it again", name);
  }
  return at->second;
}

std::string ResumableUploads::complete(const std::string& tenant, const std::string& name,
                                       const Ptr& upload, uint64_t sender) {
  const Key key(tenant, name);
  try {
    const ResumableUpload::Completed completed = upload->complete(sender);
    if (completed.checked && completed.checked->arena()->is_frozen())
      contents_.note(tenant, upload->digest(), completed.bytes, completed.checked);
    table_->note_finished(key, upload);
    return completed.tensor;
  } catch (const Error& error) {
    if (error.reason() == "UPLOAD_DIGEST") table_->forget(key, upload.get());
    throw;
  }
}

}  // namespace kiln::server

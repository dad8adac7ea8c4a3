#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "kiln/v1/uploads.pb.h"
#include "server/rpc/tensor_arrival.h"
#include "server/rpc/tensor_frames.h"
#include "server/tensors/idle_transfers.h"
#include "server/tensors/known_contents.h"

struct evp_md_ctx_st;

namespace kiln::server {

/// SHA-256 of what comes in pieces.
class Sha256 {
 public:
  Sha256();
  void add(const uint8_t* data, int64_t bytes);
  /// Of all that was added; nothing may be added any more.
  std::string digest();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

/// What is here of an upload whose sender may break off and come back. One sender counts at a time,
/// the last that came. Any thread may use it.
class ResumableUpload {
 public:
  /// `digest` empty: of contents that are not checked.
  ResumableUpload(std::optional<TensorArrival> arrival, std::string form, std::string digest,
                  std::string tensor)
      : form_(std::move(form)),
        digest_(std::move(digest)),
        arrival_(std::move(arrival)),
        tensor_(std::move(tensor)) {}

  /// What it was begun as, which is the same each time.
  const std::string& form() const { return form_; }
  const std::string& digest() const { return digest_; }
  /// Those that it will have, as long as it is no tensor yet.
  std::optional<int64_t> unfinished_bytes() const;

  /// Begins anew for a client, whose session owns the tensor: the state that it is told.
  v1::UploadState renew(const std::string& session);
  /// A sender's number, from this offset on. Throws InvalidArgument UPLOAD_OFFSET.
  uint64_t take_over(uint64_t offset);
  // What throws is Cancelled UPLOAD_TAKEN, and that of TensorArrival.
  void append(uint64_t sender, const ReceivedChunk& chunk);
  struct Completed {
    std::string tensor;
    std::shared_ptr<Slice> checked;  // its memory, the first time, where it has a digest
    int64_t bytes = 0;
  };
  /// Throws InvalidArgument UPLOAD_DIGEST where the digest is wrong, too.
  Completed complete(uint64_t sender);

  std::shared_ptr<IdleTransfers::Transfer> transfer;  // since begin()

 private:
  void require_sender(uint64_t sender) const;
  void check_digest();

  const std::string form_;
  const std::string digest_;
  mutable std::mutex mutex_;
  std::optional<TensorArrival> arrival_;  // nothing: it is a tensor
  Sha256 hash_;
  std::string found_digest_;  // of all, once all is here
  std::string tensor_;        // its id, once it is one
  uint64_t sender_ = 0;
};

/// The uploads that clients have named. One that nothing comes of is forgotten as other uploads
/// are.
class ResumableUploads {
 public:
  explicit ResumableUploads(Engine& engine) : engine_(engine) {}

  /// Throws InvalidArgument UPLOAD_NAME, UPLOAD_HEADER or UPLOAD_DIGEST, ResourceExhausted UPLOADS,
  /// and what TensorArrival throws.
  v1::UploadState begin(const v1::BeginUploadRequest& request, const Caller& caller);
  /// Throws NotFound UPLOAD.
  std::shared_ptr<ResumableUpload> find(const std::string& tenant, const std::string& name) const;
  /// All of it is here: its tensor's id. One whose contents are wrong is forgotten.
  std::string complete(const std::string& tenant, const std::string& name,
                       const std::shared_ptr<ResumableUpload>& upload, uint64_t sender);

 private:
  using Key = std::pair<std::string, std::string>;  // tenant, name
  using Ptr = std::shared_ptr<ResumableUpload>;
  /// Outlives this for the callbacks that forget uploads.
  struct Table {
    std::mutex mutex;
    std::map<Key, Ptr> uploads;
    std::deque<std::pair<Key, std::weak_ptr<ResumableUpload>>> finished;  // the oldest first
    /// Nothing when there is another of the name.
    void forget(const Key& key, const ResumableUpload* upload);
    void note_finished(const Key& key, const Ptr& upload);
  };

  Ptr find_begun(const Key& key, const std::string& form) const;
  /// What its client is told, whose session it is from now on; nothing when its tensor is gone.
  std::optional<v1::UploadState> go_on(const Key& key, ResumableUpload& upload,
                                       const std::string& session);
  Ptr make(const v1::BeginUploadRequest& request, const Caller& caller, std::string form);
  void require_place(const std::string& tenant, int64_t bytes) const;

  Engine& engine_;
  KnownContents contents_;
  const std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

}  // namespace kiln::server

// Uploads by name: they go on where they broke off, and contents that are here are not sent again.
#include <fstream>

#include "kiln/v1/uploads.grpc.pb.h"
#include "server/rpc/resumable_uploads.h"
#include "server/rpc/token_file.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

constexpr int64_t kFloats = 50'000;  // floats, more bytes than the least that are looked for

std::string digest_of(const std::string& contents) {
  Sha256 hash;
  hash.add(reinterpret_cast<const uint8_t*>(contents.data()),
           static_cast<int64_t>(contents.size()));
  return hash.digest();
}

std::string some_bytes(int64_t floats = kFloats, float first = 0) {
  std::vector<float> values(static_cast<size_t>(floats));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = first + static_cast<float>(i);
  return bytes_of(values);
}

class Uploads : public ServiceTest {
 protected:
  Uploads() { connect(); }
  void restart_with(const EngineOptions& options) {
    restart(options);
    connect();
  }
  void connect() { uploads_ = v1::UploadService::NewStub(service_->channel()); }

  static v1::BeginUploadRequest request_of(const std::string& name, int64_t floats,
                                           const std::string& sha256 = "") {
    v1::BeginUploadRequest request;
    *request.mutable_header() = header_of(floats);
    request.set_upload(name);
    request.set_sha256(sha256);
    return request;
  }
  grpc::Status begin(const v1::BeginUploadRequest& request, v1::UploadState& state,
                     const std::string& token = "") {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    return uploads_->Begin(&context, request, &state);
  }
  v1::UploadState begun(const v1::BeginUploadRequest& request, const std::string& token = "") {
    v1::UploadState state;
    const grpc::Status status = begin(request, state, token);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return state;
  }

  /// A stream with the rest of an upload.
  struct Sending {
    grpc::ClientContext context;
    v1::UploadState state;
    std::unique_ptr<grpc::ClientWriter<v1::UploadPart>> stream;
    void chunk(const std::string& contents) const {
      v1::UploadPart part;
      part.set_chunk(contents);
      stream->Write(part);
    }
    grpc::Status finish() const {
      stream->WritesDone();
      return stream->Finish();
    }
  };
  std::unique_ptr<Sending> send(const std::string& name, uint64_t offset,
                                const std::string& token = "") {
    auto sending = std::make_unique<Sending>();
    if (!token.empty()) sending->context.AddMetadata("authorization", "Bearer " + token);
    sending->stream = uploads_->Send(&sending->context, &sending->state);
    v1::UploadPart first;
    first.mutable_rest()->set_upload(name);
    first.mutable_rest()->set_offset(offset);
    sending->stream->Write(first);
    return sending;
  }
  /// The tensor of an upload that is begun and sent in one go, or found.
  std::string uploaded(const std::string& name, const std::string& contents,
                       const std::string& sha256 = "", const std::string& token = "") {
    const auto floats = static_cast<int64_t>(contents.size() / sizeof(float));
    const v1::UploadState state = begun(request_of(name, floats, sha256), token);
    if (!state.tensor().empty()) return state.tensor();
    const auto sending = send(name, state.offset(), token);
    sending->chunk(contents.substr(state.offset()));
    const grpc::Status status = sending->finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return sending->state.tensor();
  }
  std::string contents_of(const std::string& tensor) {
    std::string bytes;
    EXPECT_TRUE(service_->download(tensor, bytes).ok());
    return bytes;
  }
  void free(const std::string& tensor) {
    grpc::ClientContext context;
    v1::FreeRequest request;
    request.add_tensors(tensor);
    v1::FreeResponse response;
    EXPECT_TRUE(service_->tensors->Free(&context, request, &response).ok());
  }

  std::unique_ptr<v1::UploadService::Stub> uploads_;
};

TEST(Sha256, IsThatOfTheStandard) {
  std::string text;
  for (const char byte : digest_of("abc"))
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Uploads, GoOnWhereTheyBrokeOff) {
  const std::string contents = some_bytes();
  const v1::BeginUploadRequest request = request_of("u", kFloats);
  EXPECT_EQ(begun(request).offset(), 0U);
  {
    const auto first = send("u", 0);
    first->chunk(contents.substr(0, 80'000));
    EXPECT_TRUE(eventually([&] { return service_->counter("uploaded_bytes") == 80'000; }));
    first->context.TryCancel();
    EXPECT_EQ(first->stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_EQ(begun(request).offset(), 80'000U);
  const auto second = send("u", 80'000);
  second->chunk(contents.substr(80'000));
  ASSERT_TRUE(second->finish().ok());
  EXPECT_TRUE(contents_of(second->state.tensor()) == contents);
  // Who has lost the reply hears of the same tensor.
  EXPECT_EQ(begun(request).tensor(), second->state.tensor());
  EXPECT_EQ(service_->counter("uploaded_bytes"), static_cast<int64_t>(contents.size()));
  EXPECT_EQ(service_->counter("uploads"), 1);
  EXPECT_EQ(service_->counter("resumed_uploads"), 2);
}

TEST_F(Uploads, AreOfWhoBeganLast) {
  const std::string contents = some_bytes();
  const v1::BeginUploadRequest request = request_of("u", kFloats);
  begun(request);
  const auto first = send("u", 0);
  first->chunk(contents.substr(0, 1000));
  EXPECT_TRUE(eventually([&] { return service_->counter("uploaded_bytes") == 1000; }));
  EXPECT_EQ(begun(request).offset(), 1000U);
  first->chunk(contents.substr(1000, 1000));
  expect_status(first->finish(), grpc::StatusCode::CANCELLED, "UPLOAD_TAKEN",
                "the upload goes on over another connection");
  expect_status(send("u", 999)->finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_OFFSET",
                "the upload is sent from byte 999 on, but 1000 bytes of it are here; begin it "
                "again");
  const auto second = send("u", 1000);
  second->chunk(contents.substr(1000));
  ASSERT_TRUE(second->finish().ok());
  EXPECT_TRUE(contents_of(second->state.tensor()) == contents);
}

TEST_F(Uploads, EndWithAnotherSessionThanTheyBeganWith) {
  Sessions& sessions = service_->engine().sessions();
  v1::BeginUploadRequest request = request_of("u", 2);
  request.mutable_header()->set_session(sessions.open(""));
  begun(request);
  const std::string lost = request.header().session();
  sessions.end(lost);
  v1::UploadState state;
  expect_status(begin(request, state), grpc::StatusCode::NOT_FOUND, "SESSION",
                "session " + lost + " has ended; open another");
  request.mutable_header()->set_session(sessions.open(""));
  EXPECT_EQ(begun(request).offset(), 0U);
  const auto sending = send("u", 0);
  sending->chunk(bytes_of({1, 2}));
  ASSERT_TRUE(sending->finish().ok());
  TensorStore& tensors = service_->engine().tensors();
  const std::string tensor = sending->state.tensor();
  EXPECT_EQ(tensors.find("", tensor)->session, request.header().session());
  // A client whose connection breaks before it has read the reply comes back with another.
  const std::string second = request.header().session();
  request.mutable_header()->set_session(sessions.open(""));
  EXPECT_EQ(begun(request).tensor(), tensor);
  tensors.free_session(second);
  EXPECT_EQ(tensors.find("", tensor)->session, request.header().session());
  free(tensor);
  EXPECT_EQ(begun(request).tensor(), "");
}

TEST_F(Uploads, OfTheSameContentsAreNotSentAgain) {
  const std::string contents = some_bytes();
  const std::string digest = digest_of(contents);
  const std::string first = uploaded("a", contents, digest);
  const int64_t bytes = service_->counter("tensor_bytes");
  const v1::UploadState found = begun(request_of("b", kFloats, digest));
  ASSERT_NE(found.tensor(), "");
  EXPECT_NE(found.tensor(), first);
  EXPECT_EQ(service_->counter("found_uploads"), 1);
  EXPECT_EQ(service_->counter("uploaded_bytes"), static_cast<int64_t>(contents.size()));
  EXPECT_EQ(service_->counter("tensor_bytes"), bytes);  // in the same memory
  EXPECT_TRUE(contents_of(found.tensor()) == contents);
  EXPECT_EQ(begun(request_of("b", kFloats, digest)).tensor(), found.tensor());
  // Each is a tensor of its own: what is written to one the other does not have.
  const std::string other = some_bytes(kFloats, 7);
  v1::TensorHeader header = header_of(kFloats);
  header.set_into(first);
  std::string same;
  ASSERT_TRUE(service_->upload(header, {other}, same).ok());
  EXPECT_TRUE(contents_of(first) == other);
  EXPECT_TRUE(contents_of(found.tensor()) == contents);
  // They are known as long as a tensor has them.
  free(first);
  const std::string third = begun(request_of("c", kFloats, digest)).tensor();
  EXPECT_NE(third, "");
  free(found.tensor());
  free(third);
  EXPECT_EQ(begun(request_of("d", kFloats, digest)).tensor(), "");
}

TEST_F(Uploads, AreSentWhereTheDigestIsThatOfOthers) {
  uploaded("a", some_bytes(), digest_of(some_bytes()));
  EXPECT_EQ(begun(request_of("b", kFloats, digest_of(some_bytes(kFloats, 1)))).tensor(), "");
  // Tensors of more or fewer elements have other contents, whatever their digest is said to be.
  EXPECT_EQ(begun(request_of("c", 4 * kFloats, digest_of(some_bytes()))).tensor(), "");
  EXPECT_EQ(begun(request_of("d", kFloats / 2, digest_of(some_bytes()))).tensor(), "");
}

TEST_F(Uploads, MustHaveTheContentsOfTheirDigest) {
  const std::string contents = some_bytes(4);
  begun(request_of("u", 4, digest_of("abc")));
  const auto sending = send("u", 0);
  sending->chunk(contents);
  std::string text;
  for (const char byte : digest_of(contents))
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  expect_status(sending->finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_DIGEST",
                "the contents that came have the digest " + text +
                    ", but the upload was begun with "
                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(service_->counter("tensors"), 0);
  // It is forgotten, and may be sent rightly.
  EXPECT_EQ(begun(request_of("u", 4, digest_of("abc"))).offset(), 0U);
}

TEST_F(Uploads, MustHaveExactlyTheirBytes) {
  begun(request_of("u", 2));
  const auto little = send("u", 0);
  little->chunk("1234567");
  expect_status(little->finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has 7 bytes, but its shape (2,) needs 8");
  EXPECT_EQ(begun(request_of("u", 2)).offset(), 7U);
  const auto much = send("u", 7);
  much->chunk("89");
  expect_status(much->finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "the upload has more than the 8 bytes that its shape (2,) needs");
  const auto rest = send("u", 7);
  rest->chunk("8");
  EXPECT_TRUE(rest->finish().ok());
  const auto more = send("u", 0);
  more->chunk("9");
  expect_status(more->finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_BYTES",
                "all bytes of the upload are here already");
}

TEST_F(Uploads, MakeSense) {
  v1::UploadState state;
  expect_status(begin(request_of("", 1), state), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_NAME",
                "the name of an upload has 0 bytes, but must have 1 to 64");
  expect_status(begin(request_of(std::string(65, 'u'), 1), state),
                grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_NAME",
                "the name of an upload has 65 bytes, but must have 1 to 64");
  expect_status(begin(request_of("u", 1, "abc"), state), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_DIGEST", "the digest of the upload has 3 bytes, but SHA-256 has 32");
  v1::BeginUploadRequest into = request_of("u", 1);
  into.mutable_header()->set_into(service_->upload({1}));
  expect_status(begin(into, state), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_HEADER",
                "an upload that may be resumed makes a new tensor with contents; use Put or Upload "
                "for others");
  begun(request_of("u", 1));
  expect_status(begin(request_of("u", 2), state), grpc::StatusCode::INVALID_ARGUMENT,
                "UPLOAD_HEADER", "upload u was begun with another header or digest");
  expect_status(send("nobody", 0)->finish(), grpc::StatusCode::NOT_FOUND, "UPLOAD",
                "there is no upload nobody, or nothing came of it for a while; begin it again");
  grpc::ClientContext context;
  const auto stream = uploads_->Send(&context, &state);
  stream->WritesDone();
  expect_status(stream->Finish(), grpc::StatusCode::INVALID_ARGUMENT, "UPLOAD_HEADER",
                "an upload starts with a header");
}

TEST_F(Uploads, AreForgottenWhenNothingComesOfThem) {
  EngineOptions options = usual_options();
  options.idle_upload = std::chrono::milliseconds(300);
  restart_with(options);
  begun(request_of("u", kFloats));
  EXPECT_GT(service_->counter("tensor_bytes"), 0);
  EXPECT_TRUE(eventually([&] { return service_->counter("tensor_bytes") == 0; }));
  expect_status(send("u", 0)->finish(), grpc::StatusCode::NOT_FOUND, "UPLOAD",
                "there is no upload u, or nothing came of it for a while; begin it again");
}

TEST_F(Uploads, AreNotBegunWithoutEnd) {
  for (int i = 0; i < 64; ++i)
    begun(request_of(std::to_string(i), 1));
  v1::UploadState state;
  const grpc::Status status = begin(request_of("more", 1), state);
  expect_status(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "UPLOADS",
                "64 uploads of this tenant are unfinished already; one that nothing comes of is "
                "forgotten after a minute");
  EXPECT_DOUBLE_EQ(retry_seconds_of(status), 1);
  uploaded("0", bytes_of({1}));
  begun(request_of("more", 1));
}

TEST_F(Uploads, CountTowardsTheQuotaOfTheirTenant) {
  EngineOptions options = usual_options();
  options.quotas.usual.tensor_bytes = 16;
  restart_with(options);
  begun(request_of("u", 3));
  v1::UploadState state;
  expect_status(begin(request_of("v", 2), state), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "TENSOR_MEMORY",
                "the tensors of this tenant have 12 bytes of the 16 that it may have, and 8 more "
                "are needed; free some");
}

TEST_F(Uploads, OfOneTenantSayNothingToAnother) {
  const std::string file = (folder_.path() / "tokens").string();
  std::ofstream(file) << "alice alices-token\nbob bobs-token\n";
  GrpcOptions grpc;
  grpc.tokens = std::make_shared<TokenFile>(file);
  service_.reset();
  service_ = std::make_unique<Service>(usual_options(), grpc);
  connect();
  const std::string contents = some_bytes();
  const std::string digest = digest_of(contents);
  uploaded("a", contents, digest, "alices-token");
  // The contents are alice's alone, and so are her uploads.
  const v1::UploadState bobs = begun(request_of("b", kFloats, digest), "bobs-token");
  EXPECT_EQ(bobs.tensor(), "");
  EXPECT_EQ(bobs.offset(), 0U);
  begun(request_of("half", kFloats), "alices-token");
  expect_status(send("half", 0, "bobs-token")->finish(), grpc::StatusCode::NOT_FOUND, "UPLOAD",
                "there is no upload half, or nothing came of it for a while; begin it again");
  EXPECT_EQ(begun(request_of("half", 3), "bobs-token").offset(), 0U);
  EXPECT_NE(begun(request_of("c", kFloats, digest), "alices-token").tensor(), "");
}

}  // namespace
}  // namespace kiln::server

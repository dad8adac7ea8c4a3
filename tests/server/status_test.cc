#include "server/rpc/status.h"

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

TEST(Status, MapsEachKindToItsCode) {
  const std::pair<ErrorKind, grpc::StatusCode> codes[] = {
      {ErrorKind::InvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {ErrorKind::Unsupported, grpc::StatusCode::FAILED_PRECONDITION},
      {ErrorKind::NotFound, grpc::StatusCode::NOT_FOUND},
      {ErrorKind::HandleLost, grpc::StatusCode::DATA_LOSS},
      {ErrorKind::ResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {ErrorKind::Unavailable, grpc::StatusCode::UNAVAILABLE},
      {ErrorKind::DeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
      {ErrorKind::Cancelled, grpc::StatusCode::CANCELLED},
      {ErrorKind::Unauthenticated, grpc::StatusCode::UNAUTHENTICATED},
      {ErrorKind::Internal, grpc::StatusCode::INTERNAL}};
  for (const auto& [kind, code] : codes) {
    const grpc::Status status = status_of(Error(kind, "REASON", "a sentence"));
    expect_status(status, code, "REASON", "a sentence");
    EXPECT_EQ(static_cast<int>(detail_of(status).kind()), static_cast<int>(kind));
    EXPECT_EQ(retry_seconds_of(status), 0);
  }
}

TEST(Status, CarriesNotesAndThePlace) {
  Error error(ErrorKind::InvalidArgument, "REASON", "a sentence");
  error.add_note("in stage C");
  error.add_note("in kernel matmul");
  error.set_location({"user.py", 12});
  const v1::ErrorDetail detail = detail_of(status_of(error));
  ASSERT_EQ(detail.notes_size(), 2);
  EXPECT_EQ(detail.notes(0), "in stage C");
  EXPECT_EQ(detail.notes(1), "in kernel matmul");
  EXPECT_EQ(detail.file(), "user.py");
  EXPECT_EQ(detail.line(), 12U);
}

TEST(Status, SaysWhenToTryAgain) {
  EXPECT_DOUBLE_EQ(
      retry_seconds_of(status_of(Error(ErrorKind::ResourceExhausted, "QUEUE_FULL", "full"))), 0.1);
  EXPECT_DOUBLE_EQ(
      retry_seconds_of(status_of(Error(ErrorKind::Unavailable, "WORKER_RESTARTED", "ended"))), 0.5);
}

TEST(Status, FitsTheMetadataOfAnyClient) {
  Error error(ErrorKind::InvalidArgument, "REASON", std::string(10'000, 'x'));
  for (int i = 0; i < 100; ++i)
    error.add_note(std::string(500, 'y'));
  const grpc::Status status = status_of(error);
  EXPECT_LE(status.error_message().size() + status.error_details().size() * 4 / 3, 7'000U);
  EXPECT_EQ(detail_of(status).message().size(), 1'200U);
}

TEST(Status, DoesNotCutWithinACharacter) {
  std::string message;
  while (message.size() < 2'000)
    message += "\u00e4\u20ac";
  const std::string cut =
      detail_of(status_of(Error(ErrorKind::InvalidArgument, "REASON", message))).message();
  EXPECT_EQ(cut.substr(cut.size() - 3), "...");
  EXPECT_EQ(message.substr(0, cut.size() - 3), cut.substr(0, cut.size() - 3));
  const auto next = static_cast<unsigned char>(message[cut.size() - 3]);
  EXPECT_NE(next & 0xC0, 0x80);
}

}  // namespace
}  // namespace kiln::server

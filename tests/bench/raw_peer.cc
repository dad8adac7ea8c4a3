// What gRPC itself does, with nothing of Kiln in it: a server that answers empty calls, swallows
// chunks and sends chunks, and a client that measures it. data_path.py compares Kiln with it.
//
//   raw_peer serve ADDRESS        prints "ready", serves until its input ends
//   raw_peer measure ADDRESS MIB  {"empty_us": 55.1, "up": 2.1e9, "down": 2.3e9}

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>

namespace {

using std::chrono::steady_clock;

constexpr size_t kChunk = 1 << 20;
constexpr size_t kSourceChunks = 64;

grpc::ByteBuffer buffer_of(const std::string& contents) {
  const grpc::Slice slice(contents);
  return {&slice, 1};
}

/// What is sent: more than caches hold, as a tensor is.
const std::string& contents_of_source() {
  static const std::string contents(kSourceChunks * kChunk, 'c');
  return contents;
}

/// Reads everything; then sends as many chunks as the first message has bytes for /raw/Source, else
/// one empty message.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(bool is_source) : is_source_(is_source) { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (ok) {
      if (is_source_) left_ += message_.Length();
      StartRead(&message_);
      return;
    }
    if (!is_source_) left_ = 1;
    write();
  }
  void OnWriteDone(bool ok) override {
    if (ok && left_ > 0) {
      write();
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  void write() {
    if (left_ == 0) return Finish(grpc::Status::OK);
    --left_;
    const char* const place = contents_of_source().data() + left_ % kSourceChunks * kChunk;
    const grpc::Slice chunk(place, is_source_ ? kChunk : 0, grpc::Slice::STATIC_SLICE);
    out_ = grpc::ByteBuffer(&chunk, 1);
    StartWrite(&out_);
  }

  const bool is_source_;
  size_t left_ = 0;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer out_;
};

class Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(context->method() == "/raw/Source");
  }
};

int serve(const std::string& address) {
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

double empty_call(grpc::ChannelInterface& channel) {
  const grpc::internal::RpcMethod method("/raw/Empty", grpc::internal::RpcMethod::NORMAL_RPC);
  const auto begin = steady_clock::now();
  grpc::ClientContext context;
  grpc::ByteBuffer reply;
  grpc::internal::BlockingUnaryCall(&channel, method, &context, buffer_of(""), &reply);
  return seconds_since(begin);
}

double upload(grpc::ChannelInterface& channel, const std::string& contents) {
  const grpc::internal::RpcMethod method("/raw/Sink", grpc::internal::RpcMethod::CLIENT_STREAMING);
  const auto begin = steady_clock::now();
  grpc::ClientContext context;
  grpc::ByteBuffer reply;
  const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(&channel, method, &context,
                                                                    &reply));
  for (size_t at = 0; at < contents.size(); at += kChunk) {
    const grpc::Slice chunk(contents.data() + at, kChunk, grpc::Slice::STATIC_SLICE);
    writer->Write(grpc::ByteBuffer(&chunk, 1));
  }
  writer->WritesDone();
  return writer->Finish().ok() ? seconds_since(begin) : 1e9;
}

double download(grpc::ChannelInterface& channel, std::string& contents) {
  const grpc::internal::RpcMethod method("/raw/Source",
                                         grpc::internal::RpcMethod::SERVER_STREAMING);
  const auto begin = steady_clock::now();
  grpc::ClientContext context;
  const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
          &channel, method, &context, buffer_of(std::string(contents.size() / kChunk, 'x'))));
  grpc::ByteBuffer message;
  size_t filled = 0;
  while (reader->Read(&message)) {
    std::vector<grpc::Slice> slices;
    message.Dump(&slices);
    for (const grpc::Slice& slice : slices) {
      std::memcpy(contents.data() + filled, slice.begin(), slice.size());
      filled += slice.size();
    }
  }
  return reader->Finish().ok() && filled == contents.size() ? seconds_since(begin) : 1e9;
}

int measure(const std::string& address, size_t mib) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  std::vector<double> empty;
  for (int i = 0; i < 3000; ++i)
    empty.push_back(empty_call(*channel));
  std::nth_element(empty.begin(), empty.begin() + 1500, empty.end());
  std::string contents(mib * kChunk, 'c');
  double up = 1e9;
  double down = 1e9;
  for (int i = 0; i < 7; ++i) {
    up = std::min(up, upload(*channel, contents));
    down = std::min(down, download(*channel, contents));
  }
  const auto bytes = static_cast<double>(contents.size());
  std::printf("{\"empty_us\": %.1f, \"up\": %.4g, \"down\": %.4g}\n", empty[1500] * 1e6, bytes / up,
              bytes / down);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "serve") return serve(argv[2]);
  if (what == "measure" && argc > 3) return measure(argv[2], std::strtoull(argv[3], nullptr, 10));
  std::cerr << "raw_peer serve ADDRESS | raw_peer measure ADDRESS MIB\n";
  return 2;
}

// What a local client asks for, in the terms of the engine: memory that came along becomes a
// tensor's, and large outputs go back as memory.
//
//   put {float32 (1000000,), region 0} + descriptor  ->  tensor T, which lies in that memory
#include "server/local/local_calls.h"

#include <cstring>
#include <set>

#include "server/local/passed_memory.h"
#include "server/rpc/call_watch.h"
#include "server/rpc/status.h"
#include "server/rpc/tensor_arrival.h"

namespace kiln::server {

namespace {

// Below, copying costs less than a descriptor and a mapping on both sides.
constexpr int64_t kInlineBytes = int64_t{16} << 10;
constexpr size_t kMostRegions = Channel::kMaxFds - 1;
constexpr const char* kMethod = "kiln.v1.Local";  // in metrics and the log
constexpr size_t kMostRunning = 256;              // of one connection, as many as wait for a device

Fd take_descriptor(const v1::Region& region, std::vector<Fd>& fds) {
  if (region.index() >= fds.size()) {
    fail(ErrorKind::InvalidArgument, "REGION",
         "the contents are in descriptor {}, but {} came with the message", region.index(),
         fds.size());
  }
  return std::move(fds[region.index()]);
}

std::set<uint32_t> kept_outputs(const v1::RunRequest& request) {
  std::set<uint32_t> kept;
  for (int i = 0; i < request.arguments_size(); ++i) {
    if (request.arguments(i).output().keep()) kept.insert(static_cast<uint32_t>(i));
  }
  return kept;
}

}  // namespace

void LocalCalls::take(v1::LocalRequest& request, std::vector<Fd> fds) {
  v1::LocalReply reply;
  try {
    switch (request.kind_case()) {
      case v1::LocalRequest::kRun: run(request); return;
      case v1::LocalRequest::kPut: *reply.mutable_put() = put(*request.mutable_put(), fds); break;
      case v1::LocalRequest::kMap: contents(request.id(), request.map().tensor()); return;
      case v1::LocalRequest::kFree: {
        const std::shared_ptr<void> pass = gate_.enter();
        const std::vector<std::string> ids(request.free().tensors().begin(),
                                           request.free().tensors().end());
        reply.mutable_free()->set_freed(
            static_cast<uint32_t>(engine_.tensors().free(tenant(), ids)));
        break;
      }
      default:
        fail(ErrorKind::InvalidArgument, "LOCAL_REQUEST", "the message is no request of a session");
    }
    send(request.id(), reply);
  } catch (...) {
    fail_with(request.id(), current_error());
  }
}

void LocalCalls::run(v1::LocalRequest& request) {
  const uint64_t id = request.id();
  Caller caller = caller_;
  caller.deadline = deadline_after(request.timeout());
  const auto call = std::make_shared<Call>(std::move(caller));
  begin(id, call);
  try {
    v1::RunRequest& run = *request.mutable_run();
    run.set_session(session_);
    engine_.run(run, call, [self = shared_from_this(), id, kept = kept_outputs(run)](auto outcome) {
      self->end(id);
      if (const Error* error = std::get_if<Error>(&outcome)) {
        self->fail_with(id, *error);
      } else {
        self->answer_run(id, std::get<RunResult>(outcome), kept);
      }
    });
  } catch (...) {
    end(id);
    throw;
  }
}

void LocalCalls::answer_run(uint64_t id, const RunResult& result, const std::set<uint32_t>& kept) {
  try {
    v1::LocalReply reply;
    std::vector<Fd> fds;
    for (const RunOutput& output : result.outputs) {
      v1::Result& written = *reply.mutable_run()->add_results();
      written.set_parameter(output.parameter);
      written.set_type(static_cast<v1::DataType>(output.type));
      written.mutable_shape()->Add(output.shape.begin(), output.shape.end());
      if (kept.count(output.parameter) != 0) {
        written.set_tensor(output.tensor);
        written.set_device(result.device);
        continue;
      }
      // Too large for a reply of gRPC, it was kept unasked.
      if (!output.tensor.empty()) engine_.tensors().free(tenant(), {&output.tensor, 1});
      if (output.bytes <= kInlineBytes || fds.size() == kMostRegions) {
        written.set_data(output.slice->data(), static_cast<size_t>(output.bytes));
      } else {
        written.mutable_region()->set_index(static_cast<uint32_t>(fds.size()));
        fds.push_back(show_memory(engine_.arenas(), *output.slice, output.bytes, session_));
      }
    }
    *reply.mutable_run()->mutable_timings() = result.timings;
    reply.mutable_run()->mutable_measured()->Add(result.measured.begin(), result.measured.end());
    send(id, reply, fds);
  } catch (...) {
    fail_with(id, current_error());
  }
}

v1::UploadResponse LocalCalls::put(v1::LocalPut& request, std::vector<Fd>& fds) {
  const std::shared_ptr<void> pass = gate_.enter();
  request.mutable_header()->set_session(session_);
  TensorArrival arrival(
      engine_, request.header(), caller_,
      request.has_region() ? TensorArrival::Memory::Given : TensorArrival::Memory::Usual);
  if (request.has_region()) {
    arrival.adopt(
        take_memory(engine_.arenas(), take_descriptor(request.region(), fds), arrival.bytes()));
  } else {
    arrival.append(request.data());
  }
  v1::UploadResponse response;
  response.set_tensor(arrival.complete());
  return response;
}

void LocalCalls::contents(uint64_t id, const std::string& name) {
  const std::shared_ptr<void> pass = gate_.enter();
  const std::shared_ptr<const Tensor> tensor = engine_.tensors().find(tenant(), name);
  engine_.bring_home(
      *tensor, [self = shared_from_this(), pass, id, tensor](Outcome<std::monostate> outcome) {
        try {
          if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
          self->answer_contents(id, *tensor);
        } catch (...) {
          self->fail_with(id, current_error());
        }
      });
}

void LocalCalls::answer_contents(uint64_t id, const Tensor& tensor) {
  v1::LocalReply reply;
  v1::LocalContents& contents = *reply.mutable_contents();
  write_header(tensor, *contents.mutable_header());
  std::vector<Fd> fds;
  if (tensor.bytes <= kInlineBytes) {
    contents.set_data(tensor.slice->data(), static_cast<size_t>(tensor.bytes));
  } else {
    fds.push_back(show_memory(engine_.arenas(), *tensor.slice, tensor.bytes, session_));
    contents.mutable_region()->set_index(0);
  }
  engine_.counters().downloads.fetch_add(1);
  engine_.counters().downloaded_bytes.fetch_add(tensor.bytes);
  send(id, reply, fds);
}

void LocalCalls::begin(uint64_t id, std::shared_ptr<Call> call) {
  std::shared_ptr<void> pass = gate_.enter();
  const std::lock_guard lock(mutex_);
  if (running_.size() >= kMostRunning) {
    fail(ErrorKind::ResourceExhausted, "QUEUE_FULL",
         "{} calls of this connection run already; try again soon", running_.size());
  }
  if (is_over_ || !running_.try_emplace(id, std::move(call), std::move(pass)).second) {
    fail(ErrorKind::InvalidArgument, "LOCAL_REQUEST", "a request with the id {} runs already", id);
  }
}

void LocalCalls::end(uint64_t id) {
  const std::lock_guard lock(mutex_);
  running_.erase(id);
}

void LocalCalls::cancel_all() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    for (const auto& [id, running] : running_)
      calls.push_back(running.first);
    running_.clear();  // nobody waits for them
  }
  for (const std::shared_ptr<Call>& call : calls)
    call->cancel();
}

void LocalCalls::fail_with(uint64_t id, const Error& error) {
  v1::LocalReply reply;
  reply.set_failed(
      failed_call(engine_.counters().metrics, engine_.errors(), kMethod, error, caller_.trace));
  send(id, reply);
}

void LocalCalls::send(uint64_t id, v1::LocalReply& reply, const std::vector<Fd>& fds) {
  reply.set_id(id);
  if (!reply.has_failed()) count_call(engine_.counters().metrics, kMethod, grpc::Status::OK);
  std::vector<int> numbers;
  for (const Fd& fd : fds)
    numbers.push_back(fd.get());
  try {
    channel_->send(reply, numbers);
  } catch (const Error&) {
    // Gone, or it asks for more than it reads: either way nobody waits for what else it asked for.
    channel_->shut_down();
  }
}

}  // namespace kiln::server

// Many small calls over one stream: what a call of its own costs in HTTP/2 is paid once for as many
// as are under way. Replies that are ready while one is being written go together in the next.
//
//   put #1, run(#1), free #1 in one message  ->  the three replies, in one message or several
//
// A call begins as soon as it comes, unless a run that is under way writes what it uses, or uses
// what it writes; those behind it wait with it.
#include "server/rpc/calls_rpc.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <grpcpp/alarm.h>

#include "server/clock.h"
#include "server/errors.h"
#include "server/rpc/call_watch.h"
#include "server/rpc/status.h"
#include "server/rpc/tensor_arrival.h"
#include "server/rpc/tensor_uses.h"

namespace kiln::server {

namespace {

constexpr size_t kMostRunning = 128;        // of one stream: half of what may wait for a device
constexpr size_t kMostBytes = 4 << 20;      // of calls that wait, and of replies that nobody reads
constexpr size_t kTogetherBytes = 1 << 20;  // of several replies
// Replies to calls that end within 300 us of each other go 32 together while a client has eight
// more under way: a message of gRPC costs both ends more than such a call. None waits longer than a
// tick of gRPC's clock.
constexpr size_t kTogether = 32;
constexpr size_t kManyUnderWay = 8;
constexpr auto kSoon = std::chrono::microseconds(300);
constexpr auto kTick = std::chrono::milliseconds(1);
constexpr const char* kSmallCall = "kiln.v1.SmallCall";  // in metrics and the log

class CallsStream final : public grpc::ServerBidiReactor<v1::CallsRequest, v1::CallsReply> {
 public:
  CallsStream(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  static CallsStream* start(const grpc::CallbackServerContext& context, Engine& engine,
                            Gate& gate) {
    const auto stream = std::make_shared<CallsStream>(engine, gate);
    stream->self_ = stream;
    try {
      // Its pass is not kept: each call is counted for itself, and an idle stream holds up nobody.
      stream->caller_ = without_deadline(gate.enter(context).caller);
      stream->listener_ = gate.on_close([weak = std::weak_ptr<CallsStream>(stream)] {
        if (const auto open = weak.lock()) open->drain();
      });
      const std::lock_guard lock(stream->mutex_);
      stream->read_on();
    } catch (...) {
      stream->end(status_of(current_error()));
    }
    return stream.get();
  }

  void OnReadDone(bool ok) override {
    std::vector<uint64_t> cancelled;
    {
      const std::lock_guard lock(mutex_);
      is_reading_ = false;
      if (!ok) is_read_ = true;
      for (v1::SmallCall& call : *request_.mutable_calls()) {
        if (call.kind_case() == v1::SmallCall::kCancel) {
          cancelled.push_back(call.cancel());
          continue;
        }
        Held& held = held_.emplace_back();
        held.bytes = call.ByteSizeLong();
        held.call = std::move(call);
        held_bytes_ += held.bytes;
      }
      request_.Clear();
    }
    for (const uint64_t id : cancelled)
      cancel(id);
    take_held();
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      is_writing_ = false;
      if (!ok) return;  // OnCancel follows
      write_or_gather();
    }
    take_held();
  }

  void OnCancel() override {
    end(grpc::Status::CANCELLED);
    std::map<uint64_t, Running> running;
    {
      const std::lock_guard lock(mutex_);
      running.swap(running_);
      under_way_ = {};
    }
    for (const auto& [id, each] : running)
      each.call->cancel();
  }

  void OnDone() override {
    if (listener_ != 0) gate_.forget(listener_);
    self_.reset();
  }

 private:
  /// A call that has come but not begun.
  struct Held {
    v1::SmallCall call;
    size_t bytes = 0;
    std::optional<TensorUses> uses;  // once it was the next
  };
  struct Running {
    std::shared_ptr<Call> call;
    std::shared_ptr<void> pass;
    TensorUses uses;
  };

  /// Begins what may begin, in order and by one thread at a time; then reads on.
  void take_held() {
    std::unique_lock lock(mutex_);
    if (is_taking_) return;  // who does sees what has changed
    is_taking_ = true;
    while (!held_.empty() && !is_finished_ && has_room()) {
      Held& next = held_.front();
      if (!next.uses) next.uses = uses_of(next.call);
      if (under_way_.conflict_with(*next.uses)) break;
      Held held = std::move(next);
      held_.pop_front();
      held_bytes_ -= held.bytes;
      lock.unlock();
      take(held.call, *held.uses);
      lock.lock();
    }
    is_taking_ = false;
    finish_if_over();
    read_on();
  }

  TensorUses uses_of(const v1::SmallCall& call) {
    TensorUses uses;
    if (call.has_put() && !call.put().header().into().empty())
      uses.writes.push_back(call.put().header().into());
    if (!call.has_run()) return uses;
    const std::shared_ptr<const KernelEntry> kernel = engine_.find_kernel(call.run().kernel_id());
    if (!kernel) return uses;  // it will fail
    const std::vector<Parameter>& parameters = kernel->artifact().parameters;
    for (size_t i = 0; i < static_cast<size_t>(call.run().arguments_size()); ++i) {
      const v1::Argument& argument = call.run().arguments(static_cast<int>(i));
      if (!argument.has_tensor()) continue;
      const bool is_output = i < parameters.size() && parameters[i].is_output;
      (is_output ? uses.writes : uses.reads).push_back(argument.tensor());
    }
    return uses;
  }

  void take(v1::SmallCall& call, const TensorUses& uses) {
    v1::SmallReply reply;
    reply.set_id(call.id());
    Metrics& metrics = engine_.counters().metrics;
    try {
      if (call.has_run()) return run(call, uses);
      const std::shared_ptr<void> pass = gate_.enter();
      answer(call, reply);
      count_call(metrics, kSmallCall, grpc::Status::OK);
    } catch (...) {
      reply.set_failed(
          failed_call(metrics, engine_.errors(), kSmallCall, current_error(), caller_.trace));
    }
    const std::lock_guard lock(mutex_);
    push(std::move(reply));
  }

  /// What is done at once.
  void answer(v1::SmallCall& call, v1::SmallReply& reply) {
    switch (call.kind_case()) {
      case v1::SmallCall::kPut: {
        TensorArrival arrival(engine_, call.put().header(), caller_);
        arrival.append(call.put().data());
        reply.mutable_put()->set_tensor(arrival.complete(call.number()));
        return;
      }
      case v1::SmallCall::kFree: {
        const std::vector<std::string> ids(call.free().tensors().begin(),
                                           call.free().tensors().end());
        reply.mutable_free()->set_freed(
            static_cast<uint32_t>(engine_.tensors().free(caller_.principal.tenant, ids)));
        return;
      }
      default:
        fail(ErrorKind::InvalidArgument, "SMALL_CALL", "call {} of the stream asks for nothing",
             call.id());
    }
  }

  void run(v1::SmallCall& asked, const TensorUses& uses) {
    const uint64_t id = asked.id();
    Caller caller = of_session(caller_, asked.run().session());
    caller.deadline = deadline_after(asked.timeout());
    const auto call = std::make_shared<Call>(std::move(caller));
    {
      std::shared_ptr<void> pass = gate_.enter();
      const std::lock_guard lock(mutex_);
      if (is_finished_) return;
      if (!running_.try_emplace(id, Running{call, std::move(pass), uses}).second) {
        fail(ErrorKind::InvalidArgument, "SMALL_CALL", "a call with the id {} runs already", id);
      }
      under_way_.add(uses);
    }
    try {
      engine_.run(asked.run(), call, [self = self_, id](Outcome<RunResult> outcome) {
        self->end_run(id, std::move(outcome));
      });
    } catch (...) {
      end_run(id, current_error());
    }
  }

  void end_run(uint64_t id, Outcome<RunResult> outcome) {
    v1::SmallReply reply;
    reply.set_id(id);
    Metrics& metrics = engine_.counters().metrics;
    if (const Error* error = std::get_if<Error>(&outcome)) {
      reply.set_failed(failed_call(metrics, engine_.errors(), kSmallCall, *error, caller_.trace));
    } else {
      write_reply(std::get<RunResult>(outcome), *reply.mutable_run());
      count_call(metrics, kSmallCall, grpc::Status::OK);
    }
    std::shared_ptr<void> pass;  // ends behind the lock: who waits for the last one may come here
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = running_.find(id); at != running_.end()) {
        pass = std::move(at->second.pass);
        under_way_.remove(at->second.uses);
        running_.erase(at);
      }
      const Clock::time_point now = Clock::now();
      end_soon_ = now - last_end_ < kSoon;
      last_end_ = now;
      push(std::move(reply));
    }
    take_held();
  }

  void cancel(uint64_t id) {
    std::shared_ptr<Call> call;
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = running_.find(id); at != running_.end()) call = at->second.call;
      const auto held = std::find_if(held_.begin(), held_.end(),
                                     [&](const Held& each) { return each.call.id() == id; });
      if (!call && held != held_.end()) {
        held_bytes_ -= held->bytes;
        held_.erase(held);
        v1::SmallReply reply;
        reply.set_id(id);
        reply.set_failed(failed_call(
            engine_.counters().metrics, engine_.errors(), kSmallCall,
            Error(ErrorKind::Cancelled, "CANCELLED",
                  fmt::format("call {} of the stream was cancelled before it began", id)),
            caller_.trace));
        push(std::move(reply));
      }
    }
    if (call) call->cancel();
  }

  void write_gathered() {
    const std::lock_guard lock(mutex_);
    is_timed_ = false;
    if (!is_writing_) write_next();
  }

  /// The daemon takes no more calls: what runs is answered, then the stream ends.
  void drain() {
    const std::lock_guard lock(mutex_);
    is_read_ = true;
    status_ = status_of(Error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending"));
    finish_if_over();
  }

  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!is_finished_) finish(status);
  }

  // With the lock held.
  bool has_room() const { return running_.size() < kMostRunning && waiting_bytes_ < kMostBytes; }
  void read_on() {
    if (is_reading_ || is_read_ || is_finished_ || held_bytes_ >= kMostBytes) return;
    is_reading_ = true;
    StartRead(&request_);
  }
  void push(v1::SmallReply reply) {
    if (is_finished_) return;
    waiting_bytes_ += reply.ByteSizeLong();
    waiting_.push_back(std::move(reply));
    if (!is_writing_) write_or_gather();
  }
  void write_or_gather() {
    const bool is_much = waiting_.size() >= kTogether || waiting_bytes_ >= kTogetherBytes;
    if (is_much || !end_soon_ || running_.size() < kManyUnderWay) return write_next();
    if (is_timed_ || waiting_.empty() || is_finished_) return;
    is_timed_ = true;
    // The alarm keeps what it calls as long as it lives, and is ours.
    const auto tick = [stream = std::weak_ptr<CallsStream>(self_)](bool) {
      if (const auto open = stream.lock()) open->write_gathered();
    };
    alarm_.Set(std::chrono::system_clock::now() + kTick, tick);
  }
  void write_next() {
    if (is_finished_ || waiting_.empty()) return;
    is_writing_ = true;
    reply_.Clear();
    for (size_t bytes = 0; !waiting_.empty(); waiting_.pop_front()) {
      const size_t more = waiting_.front().ByteSizeLong();
      if (bytes != 0 && bytes + more > kTogetherBytes) break;
      bytes += more;
      waiting_bytes_ -= more;
      *reply_.add_replies() = std::move(waiting_.front());
    }
    StartWrite(&reply_);
  }
  void finish_if_over() {
    const bool is_over = is_read_ && held_.empty() && running_.empty() && !is_writing_;
    if (is_over && !is_taking_ && !is_finished_) finish(status_);
  }
  void finish(const grpc::Status& status) {
    is_finished_ = true;
    Finish(status);
  }

  Engine& engine_;
  Gate& gate_;
  Caller caller_;
  uint64_t listener_ = 0;  // 0: none
  v1::CallsRequest request_;
  v1::CallsReply reply_;

  std::mutex mutex_;
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  std::map<uint64_t, Running> running_;
  UsesUnderWay under_way_;  // what running_ uses
  std::deque<v1::SmallReply> waiting_;
  size_t waiting_bytes_ = 0;
  grpc::Alarm alarm_;  // until which replies may be gathered
  Clock::time_point last_end_;
  bool end_soon_ = false;  // the last two runs ended close to each other
  bool is_timed_ = false;
  grpc::Status status_;
  bool is_reading_ = false;
  bool is_read_ = false;    // no more calls will come
  bool is_taking_ = false;  // a thread is at held_
  bool is_writing_ = false;
  bool is_finished_ = false;
  std::shared_ptr<CallsStream> self_;
};

}  // namespace

grpc::ServerBidiReactor<v1::CallsRequest, v1::CallsReply>* CallsRpc::Calls(
    grpc::CallbackServerContext* context) {
  return CallsStream::start(*context, engine_, gate_);
}

}  // namespace kiln::server

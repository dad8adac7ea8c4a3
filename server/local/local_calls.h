#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kiln/v1/local.pb.h"
#include "server/call.h"
#include "server/engine/engine.h"
#include "server/ipc/channel.h"
#include "server/rpc/gate.h"

namespace kiln::server {

/// The requests of one connection of a local client. The connection's thread hands them in; replies
/// are sent by whoever has them.
class LocalCalls : public std::enable_shared_from_this<LocalCalls> {
 public:
  LocalCalls(Engine& engine, Gate& gate, std::shared_ptr<Channel> channel, std::string session,
             Caller caller)
      : engine_(engine),
        gate_(gate),
        channel_(std::move(channel)),
        session_(std::move(session)),
        caller_(of_session(std::move(caller), session_)) {}

  /// Throws nothing: what is wrong with a request is its reply.
  void take(v1::LocalRequest& request, std::vector<Fd> fds);
  /// The client has hung up: its calls are cancelled.
  void cancel_all();

 private:
  void run(v1::LocalRequest& request);
  void answer_run(uint64_t id, const RunResult& result, const std::set<uint32_t>& kept);
  v1::UploadResponse put(v1::LocalPut& request, std::vector<Fd>& fds);
  void contents(uint64_t id, const std::string& tensor);
  void answer_contents(uint64_t id, const Tensor& tensor);

  const std::string& tenant() const { return caller_.principal.tenant; }
  void begin(uint64_t id, std::shared_ptr<Call> call);
  void end(uint64_t id);
  void fail_with(uint64_t id, const Error& error);
  void send(uint64_t id, v1::LocalReply& reply, const std::vector<Fd>& fds = {});

  Engine& engine_;
  Gate& gate_;
  const std::shared_ptr<Channel> channel_;
  const std::string session_;
  const Caller caller_;
  std::mutex mutex_;
  std::map<uint64_t, std::pair<std::shared_ptr<Call>, std::shared_ptr<void>>> running_;
  bool is_over_ = false;
};

}  // namespace kiln::server

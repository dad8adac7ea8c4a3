#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/engine/engine.h"
#include "server/ipc/channel.h"
#include "server/rpc/gate.h"

namespace kiln::server {

/// The shorter way for clients on this host: a SEQPACKET socket of this user's, where a connection
/// shows the nonce of its session and then sends the requests of local.proto. A thread for each
/// connection, since the wait for one request is all that it does.
class LocalServer {
 public:
  /// Listens beside the daemon's own socket. Throws Unavailable LISTEN.
  LocalServer(Engine& engine, Gate& gate, std::string path);
  /// Hangs up on everybody.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  const std::string& path() const { return path_; }
  /// A nonce with which connections belong to this session, until dismiss().
  std::string admit(const std::string& session, const Caller& caller);
  void dismiss(const std::string& session);

 private:
  struct Connection {
    explicit Connection(Fd socket)
        : channel(std::make_shared<Channel>(std::move(socket), Channel::WhenFull::Fail)) {}
    const std::shared_ptr<Channel> channel;
    std::string session;  // none yet
    Caller caller;
    bool is_over = false;
    std::thread thread;
  };

  /// What a nonce is good for.
  struct Admitted {
    std::string session;
    Caller caller;
  };

  void accept_all();
  void take(Fd socket);
  void join_those_over();
  void serve(Connection& connection);
  void serve(Connection& connection, const std::string& session);
  std::string greet(Connection& connection);

  Engine& engine_;
  Gate& gate_;
  const std::string path_;
  Fd socket_;

  std::mutex mutex_;
  std::map<std::string, Admitted> sessions_;  // by nonce
  std::list<Connection> connections_;
  std::thread acceptor_;
};

}  // namespace kiln::server

// Connections of local clients: who may, how many, and until when. The socket's file is this user's
// alone, the peer is asked for its user all the same, and what it may see is told by the nonce that
// its session got over the daemon's own, authenticated, way. A stranger costs a thread for a
// moment.
#include "server/local/local_server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/errors.h"
#include "server/local/local_calls.h"

namespace kiln::server {

namespace {

constexpr size_t kMostConnections = 512;
constexpr size_t kMostOfASession = 64;
constexpr timeval kHelloTime{.tv_sec = 5, .tv_usec = 0};
// A client is not trusted: without a limit its message could take all memory of the daemon.
constexpr int64_t kRequestBytes = int64_t{64} << 20;

Fd listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail(ErrorKind::Unavailable, "LISTEN", "{} is too long for the path of a socket", path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  // Who starts us has made sure that no other daemon listens here.
  ::unlink(path.c_str());
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0 || ::listen(socket.get(), 64) != 0) {
    fail(ErrorKind::Unavailable, "LISTEN", "cannot listen on {}: {}", path, std::strerror(errno));
  }
  return socket;
}

bool is_this_user(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

void set_receive_limit(const Channel& channel, timeval limit) {
  ::setsockopt(channel.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

}  // namespace

LocalServer::LocalServer(Engine& engine, Gate& gate, std::string path)
    : engine_(engine), gate_(gate), path_(std::move(path)), socket_(listen_at(path_)) {
  acceptor_ = std::thread([this] { accept_all(); });
}

LocalServer::~LocalServer() {
  ::shutdown(socket_.get(), SHUT_RDWR);  // which ends accept()
  acceptor_.join();
  ::unlink(path_.c_str());
  {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_)
      connection.channel->shut_down();
  }
  // Nobody adds to them any more.
  for (Connection& connection : connections_)
    connection.thread.join();
}

std::string LocalServer::admit(const std::string& session, const Caller& caller) {
  join_those_over();
  std::string nonce = random_hex(16);
  const std::lock_guard lock(mutex_);
  sessions_[nonce] = {session, caller};
  return nonce;
}

void LocalServer::dismiss(const std::string& session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.session == session; });
  for (Connection& connection : connections_) {
    if (connection.session == session) connection.channel->shut_down();
  }
}

void LocalServer::accept_all() {
  while (true) {
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) {
      join_those_over();
      take(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      join_those_over();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void LocalServer::take(Fd socket) {
  if (!is_this_user(socket)) return;
  const std::lock_guard lock(mutex_);
  if (connections_.size() >= kMostConnections) {
    spdlog::warn("a local connection was refused: there are {} already", connections_.size());
    return;
  }
  Connection& connection = connections_.emplace_back(std::move(socket));
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
  } catch (const std::system_error& error) {
    spdlog::warn("a local connection was refused: {}", error.what());
    connections_.pop_back();
  }
}

void LocalServer::join_those_over() {
  std::list<Connection> over;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = connections_.begin(); at != connections_.end();) {
      const auto next = std::next(at);
      if (at->is_over) over.splice(over.end(), connections_, at);
      at = next;
    }
  }
  for (Connection& connection : over)
    connection.thread.join();
}

void LocalServer::serve(Connection& connection) {
  try {
    const std::string session = greet(connection);
    if (!session.empty()) serve(connection, session);
  } catch (const Error& error) {
    spdlog::warn("a local client was hung up on: {}", error.message());
  } catch (...) {
    current_error();  // logged
  }
  connection.channel->shut_down();
  const std::lock_guard lock(mutex_);
  connection.is_over = true;
}

void LocalServer::serve(Connection& connection, const std::string& session) {
  const auto calls =
      std::make_shared<LocalCalls>(engine_, gate_, connection.channel, session, connection.caller);
  // However this ends.
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { calls->cancel_all(); });
  v1::LocalRequest request;
  std::vector<Fd> fds;
  while (connection.channel->receive(request, fds, kRequestBytes))
    calls->take(request, std::move(fds));
}

/// The session whose nonce the connection shows; none when it shows another, or nothing in time.
std::string LocalServer::greet(Connection& connection) {
  set_receive_limit(*connection.channel, kHelloTime);
  v1::LocalRequest request;
  std::vector<Fd> fds;
  if (!connection.channel->receive(request, fds, kRequestBytes)) return {};
  std::string session;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(request.hello().nonce());
    const auto count =
        std::count_if(connections_.begin(), connections_.end(), [&](const Connection& other) {
          return at != sessions_.end() && other.session == at->second.session;
        });
    if (at == sessions_.end() || static_cast<size_t>(count) >= kMostOfASession) return {};
    session = connection.session = at->second.session;
    connection.caller = at->second.caller;
  }
  set_receive_limit(*connection.channel, {});
  engine_.sessions().set_local(session);
  v1::LocalReply reply;
  reply.set_id(request.id());
  reply.mutable_welcome();
  connection.channel->send(reply);
  return session;
}

}  // namespace kiln::server

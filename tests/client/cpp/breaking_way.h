#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln::test {

/// A port before a service at 127.0.0.1:PORT. A connection breaks once more bytes have gone to the
/// service, over all connections, than the next of `breaks` says; each breaks one.
class BreakingWay {
 public:
  BreakingWay(const std::string& target, std::vector<std::int64_t> breaks)
      : target_(port_of(target)), breaks_(std::move(breaks)) {
    sockaddr_in address = at(0);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~BreakingWay() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_)
        ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& carrier : carriers_)
      carrier.join();
    for (const int socket : sockets_)
      ::close(socket);
    ::close(listener_);
  }
  BreakingWay(const BreakingWay&) = delete;
  BreakingWay& operator=(const BreakingWay&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Bytes that have gone to the service.
  std::int64_t sent() const { return sent_.load(); }

 private:
  static int port_of(const std::string& address) {
    return std::stoi(address.substr(address.rfind(':') + 1));
  }
  static sockaddr_in at(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }

  void accept_all() {
    while (true) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      const int service = ::socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in address = at(target_);
      ::connect(service, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      const std::lock_guard lock(mutex_);
      sockets_.insert(sockets_.end(), {client, service});
      carriers_.emplace_back([=, this] { carry(client, service, true); });
      carriers_.emplace_back([=, this] { carry(service, client, false); });
    }
  }

  void carry(int from, int to, bool is_counted) {
    std::vector<char> bytes(1 << 16);
    while (true) {
      const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
      if (count <= 0 || !send_all(to, bytes.data(), count)) break;
      if (is_counted && is_broken(count)) break;
    }
    ::shutdown(from, SHUT_RDWR);
    ::shutdown(to, SHUT_RDWR);
  }
  static bool send_all(int to, const char* bytes, ssize_t count) {
    while (count > 0) {
      const ssize_t sent = ::send(to, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes += sent;
      count -= sent;
    }
    return true;
  }
  bool is_broken(ssize_t more) {
    const std::int64_t sent = sent_ += more;
    const std::lock_guard lock(mutex_);
    if (breaks_.empty() || sent <= breaks_.front()) return false;
    breaks_.erase(breaks_.begin());
    return true;
  }

  const int target_;
  const int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
  std::atomic<std::int64_t> sent_{0};
  std::mutex mutex_;
  std::vector<std::int64_t> breaks_;
  std::vector<int> sockets_;
  std::list<std::thread> carriers_;
  std::thread acceptor_;
};

}  // namespace kiln::test

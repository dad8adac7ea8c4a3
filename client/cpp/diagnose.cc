// Why a service is not reached: what gRPC does is done again step by step, name, port, TLS, HTTP/2,
// and the step that fails is said in a sentence with the way out. gRPC's own texts differ from
// version to version and name its internals. client/python/kiln/_service/diagnose.py says the same
// in the same words.
#include "client/cpp/diagnose.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr int kMilliseconds = 3'000;
// What a client of HTTP/2 says first, with empty settings; a server's first frame is its settings.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
constexpr unsigned char kSettings = 4;
constexpr std::size_t kFrame = 9;  // bytes of a frame's header

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Connects within the time; 0, or what the system says.
int connect_within(const Socket& socket, const sockaddr* name, socklen_t size) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(socket.get(), name, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    socklen_t length = sizeof error;
    if (::poll(&ready, 1, kMilliseconds) == 0) return ETIMEDOUT;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  ::fcntl(socket.get(), F_SETFL, flags);
  const timeval time{.tv_sec = kMilliseconds / 1000, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  return error;
}

/// The connection to one of the addresses, or the last error.
std::pair<Socket, int> connect_to(const addrinfo* list) {
  int error = EHOSTUNREACH;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0));
    error = connect_within(socket, each->ai_addr, each->ai_addrlen);
    if (error == 0) return {std::move(socket), 0};
  }
  return {Socket(-1), error};
}

Fault connection_fault(const std::string& address, int error) {
  const auto says = [](std::string message) { return Fault{"UNREACHABLE", std::move(message)}; };
  switch (error) {
    case ECONNREFUSED:
      return says(
          fmt::format("nothing listens at {}: start kilnd there, or correct the address", address));
    case ENOENT:
      return says(
          fmt::format("nothing listens at {}, there is no such socket: start kilnd there, "
                      "or correct the address",
                      address));
    case EACCES:
      return says(
          fmt::format("the socket of {} is another user's: have its owner start kilnd with "
                      "a port and a token",
                      address));
    case ETIMEDOUT:
      return says(
          fmt::format("{} does not answer: correct the address, or let the port through its "
                      "firewall",
                      address));
    default:
      return says(fmt::format("{} cannot be reached: {}; correct the address", address,
                              std::strerror(error)));
  }
}

/// HOST of HOST:PORT, without the brackets of an IPv6 address.
std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

/// The addresses of HOST:PORT; none where no host is called so.
Addresses resolve(const std::string& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = address.substr(address.rfind(':') + 1);
  if (::getaddrinfo(host_of(address).c_str(), port.c_str(), &wanted, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

Fault name_fault(const std::string& address) {
  return {"UNREACHABLE", fmt::format("no host is called {}: correct the address {}",
                                     address.substr(0, address.rfind(':')), address)};
}

/// One handshake of TLS that trusts the authorities of a file, or anybody.
class Handshake {
 public:
  Handshake(const Socket& socket, const std::string& host, const std::string& ca)
      : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), tls_(nullptr, &SSL_free) {
    // A certificate for another name is looked at all the same.
    SSL_CTX_set_verify(context_.get(), ca.empty() ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       [](int good, X509_STORE_CTX* store) {
                         const int error = X509_STORE_CTX_get_error(store);
                         return good != 0 || is_other_name(error) ? 1 : 0;
                       });
    if (!ca.empty()) SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr);
    tls_.reset(SSL_new(context_.get()));
    in_addr address{};
    const bool numeric =
        ::inet_pton(AF_INET, host.c_str(), &address) == 1 || host.find(':') != std::string::npos;
    if (numeric) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str());
    } else {
      SSL_set1_host(tls_.get(), host.c_str());
      SSL_set_tlsext_host_name(tls_.get(), host.c_str());
    }
    SSL_set_fd(tls_.get(), socket.get());
    done_ = SSL_connect(tls_.get()) == 1;
  }

  bool done() const { return done_; }
  long verdict() const { return SSL_get_verify_result(tls_.get()); }

  static bool is_other_name(long error) {
    return error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH;
  }

  X509* certificate() const { return SSL_get0_peer_certificate(tls_.get()); }

  /// What the certificate was made for.
  std::string names() const {
    std::vector<std::string> names;
    auto* list = static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate(), NID_subject_alt_name, nullptr, nullptr));
    for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
      const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
      if (name->type == GEN_DNS) names.push_back(text_of(name->d.dNSName));
      if (name->type == GEN_IPADD) names.push_back(numbers_of(name->d.iPAddress));
    }
    GENERAL_NAMES_free(list);
    return names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", "));
  }

 private:
  static std::string text_of(const ASN1_STRING* text) {
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
            static_cast<std::size_t>(ASN1_STRING_length(text))};
  }
  static std::string numbers_of(const ASN1_STRING* bytes) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes),
                text.data(), text.size());
    return text.data();
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  bool done_ = false;
};

bool speaks_http2(const Socket& socket) {
  if (::send(socket.get(), kPreface, sizeof kPreface - 1, MSG_NOSIGNAL) < 0) return false;
  std::array<unsigned char, kFrame> answer{};
  return ::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL) ==
             static_cast<ssize_t>(kFrame) &&
         answer[3] == kSettings;
}

/// What is wrong when no TLS was asked for.
std::optional<Fault> plain_fault(const std::string& address, const addrinfo* list,
                                 const Socket& socket) {
  if (speaks_http2(socket)) return std::nullopt;
  const auto [again, error] = connect_to(list);
  if (error == 0 && Handshake(again, "localhost", "").done()) {
    return Fault{
        "TLS", fmt::format("the service at {} wants TLS: name its certificate (ca=, --ca), or run "
                           "the kiln login line that it logged",
                           address)};
  }
  return Fault{"UNREACHABLE",
               fmt::format("what listens at {} is no Kiln service: correct the address", address)};
}

/// What is wrong when TLS was asked for.
std::optional<Fault> tls_fault(const std::string& address, const std::string& host,
                               const std::string& ca, const Socket& socket) {
  const Handshake handshake(socket, host, ca);
  const long verdict = handshake.verdict();
  if (handshake.done() && verdict == X509_V_OK) return std::nullopt;
  if (handshake.done() || Handshake::is_other_name(verdict)) {
    return Fault{
        "CERTIFICATE",
        fmt::format("the certificate of {} is for {}, not for {}: use such a name, or make "
                    "a certificate for this one on the service",
                    address, handshake.names(), host)};
  }
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) {
    return Fault{
        "CERTIFICATE",
        fmt::format("the certificate of {} has expired: make a new one on the service", address)};
  }
  if (verdict != X509_V_OK) {
    return Fault{
        "CERTIFICATE",
        fmt::format("the certificate of {} is none that {} vouches for: take the service's "
                    "own, from the kiln login line that it logged",
                    address, ca)};
  }
  return Fault{"TLS",
               fmt::format("the service at {} does not speak TLS: leave the certificate out (ca=, "
                           "--ca), or start kilnd with --tls-cert and --tls-key",
                           address)};
}

std::optional<Fault> socket_fault(const std::string& address) {
  const std::string path = address.substr(std::string("unix:").size());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return connection_fault(address, ENAMETOOLONG);
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int error = connect_within(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  if (error != 0) return connection_fault(address, error);
  return std::nullopt;
}

std::optional<Fault> port_fault(const std::string& address, const Trust& trust) {
  const Addresses list = resolve(address);
  if (list == nullptr) return name_fault(address);
  const auto [socket, error] = connect_to(list.get());
  if (error != 0) return connection_fault(address, error);
  if (trust.ca.empty()) return plain_fault(address, list.get(), socket);
  const std::string& name = trust.server_name;
  return tls_fault(address, name.empty() ? host_of(address) : name, trust.ca, socket);
}

}  // namespace

Fault why_unreachable(const std::string& address, const Trust& trust, std::string otherwise) {
  std::optional<Fault> fault =
      address.starts_with("unix:") ? socket_fault(address) : port_fault(address, trust);
  return fault ? *std::move(fault) : Fault{"UNREACHABLE", std::move(otherwise)};
}

ShownCertificate shown_certificate(const std::string& address) {
  const auto refuse = [](Fault fault) {
    throw_error({.kind = ErrorKind::Unavailable,
                 .reason = std::move(fault.reason),
                 .message = std::move(fault.message)});
  };
  const Addresses list = resolve(address);
  if (list == nullptr) refuse(name_fault(address));
  const auto [socket, error] = connect_to(list.get());
  if (error != 0) refuse(connection_fault(address, error));
  const Handshake handshake(socket, host_of(address), "");
  if (!handshake.done()) {
    refuse({"TLS", fmt::format("the service at {} does not speak TLS, so it has no fingerprint: "
                               "leave --fingerprint out, or correct the address",
                               address)});
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  X509_digest(handshake.certificate(), EVP_sha256(), digest.data(), &size);
  ShownCertificate shown;
  for (unsigned int i = 0; i < size; ++i)
    shown.fingerprint += fmt::format("{:02x}", digest[i]);
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(memory.get(), handshake.certificate());
  char* text = nullptr;
  const long length = BIO_get_mem_data(memory.get(), &text);
  shown.pem.assign(text, static_cast<std::size_t>(length));
  return shown;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

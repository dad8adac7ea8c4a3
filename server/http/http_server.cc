// HTTP by libevent's evhttp, in a thread of its own that does nothing else: its answers are short,
// and say something of the daemon's health also while everything else is busy. What it shows needs
// no input, so that all but a path is refused.
#include "server/http/http_server.h"

#include <thread>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/address.h"
#include "server/errors.h"
#include "server/ipc/fd.h"

namespace kiln::server {

namespace {

constexpr int kIdleSeconds = 10;  // in which a request comes, or an answer is taken
constexpr int kHeaderBytes = 8192;

using Base = std::unique_ptr<event_base, decltype(&::event_base_free)>;
using Http = std::unique_ptr<evhttp, decltype(&::evhttp_free)>;
using Event = std::unique_ptr<event, decltype(&::event_free)>;

int port_of(evutil_socket_t socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

HttpReply reply_for(const HttpServer::Pages& pages, const std::string& path) {
  const auto page = pages.find(path);
  if (page == pages.end()) {
    std::string body = "There is no such page. There are:\n";
    for (const auto& [name, show] : pages)
      body += name + "\n";
    return {404, "text/plain; charset=utf-8", body};
  }
  try {
    return page->second();
  } catch (...) {
    return {500, "text/plain; charset=utf-8", current_error().message() + "\n"};
  }
}

void answer_request(evhttp_request* request, void* context) {
  const auto& pages = *static_cast<const HttpServer::Pages*>(context);
  const char* path = ::evhttp_uri_get_path(::evhttp_request_get_evhttp_uri(request));
  const HttpReply reply = reply_for(pages, path != nullptr ? path : "/");
  evkeyvalq* const headers = ::evhttp_request_get_output_headers(request);
  ::evhttp_add_header(headers, "Content-Type", reply.type.c_str());
  ::evhttp_add_header(headers, "Cache-Control", "no-store");
  ::evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  // Nothing is loaded from elsewhere, and nothing is executed, whatever a name in a page says.
  ::evhttp_add_header(headers, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  evbuffer* const body = ::evhttp_request_get_output_buffer(request);
  ::evbuffer_add(body, reply.body.data(), reply.body.size());
  ::evhttp_send_reply(request, reply.status, nullptr, nullptr);
}

void stop_loop(evutil_socket_t, short, void* base) {
  ::event_base_loopbreak(static_cast<event_base*>(base));
}

}  // namespace

struct HttpServer::Parts {
  Parts(const std::string& listen, Pages shown)
      : pages(std::move(shown)),
        base(::event_base_new(), &::event_base_free),
        http(::evhttp_new(base.get()), &::evhttp_free),
        end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        ending(::event_new(base.get(), end.get(), EV_READ, stop_loop, base.get()), &::event_free) {
    const HostPort place = parse_host_port(listen, "not HOST:PORT");
    ::evhttp_set_allowed_methods(http.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    ::evhttp_set_timeout(http.get(), kIdleSeconds);
    ::evhttp_set_max_headers_size(http.get(), kHeaderBytes);
    ::evhttp_set_max_body_size(http.get(), kHeaderBytes);
    ::evhttp_set_gencb(http.get(), answer_request, &pages);
    evhttp_bound_socket* const socket = ::evhttp_bind_socket_with_handle(
        http.get(), place.host.c_str(), static_cast<uint16_t>(place.port));
    if (socket == nullptr) {
      fail(ErrorKind::Unavailable, "LISTEN",
           "cannot listen on {} for metrics; the address is in use, or not of this host", listen);
    }
    const int port = port_of(::evhttp_bound_socket_get_fd(socket));
    address = listen.substr(0, listen.rfind(':') + 1) + std::to_string(port);
    ::event_add(ending.get(), nullptr);
    thread = std::thread([this] { ::event_base_dispatch(base.get()); });
  }
  ~Parts() {
    ::eventfd_write(end.get(), 1);
    thread.join();
  }

  Pages pages;
  const Base base;
  const Http http;
  const Fd end;
  const Event ending;
  std::string address;
  std::thread thread;
};

HttpServer::HttpServer(const std::string& listen, Pages pages)
    : parts_(std::make_unique<Parts>(listen, std::move(pages))) {}

HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return parts_->address; }

}  // namespace kiln::server

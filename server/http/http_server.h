#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace kiln::server {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// A small HTTP server for those who look after the daemon: GET and HEAD of a few pages, one
/// thread.
class HttpServer {
 public:
  /// What a path shows, asked at each request, in the server's thread.
  using Pages = std::map<std::string, std::function<HttpReply()>>;

  /// Listens on HOST:PORT. Throws InvalidArgument LISTEN, Unavailable LISTEN.
  HttpServer(const std::string& listen, Pages pages);
  ~HttpServer();

  /// HOST:PORT, with the port that was chosen for port 0.
  const std::string& address() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::server

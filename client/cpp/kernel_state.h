#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <kiln/kernel.h>

#include "client/cpp/link.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A kernel of the service, and all that is needed to make it again.
class KernelState {
 public:
  /// Compiles it. A module that Python saved may have sizes among the arguments: `argument_sizes`
  /// has then for each argument its name where it is a size, else "".
  KernelState(std::shared_ptr<Link> link, v1::CompileRequest request,
              std::vector<Parameter> parameters, std::vector<std::string> argument_sizes = {});

  const std::string& name() const { return request_.source_map().kernel(); }
  const v1::CompileRequest& request() const { return request_; }
  const std::vector<std::string>& argument_sizes() const { return argument_sizes_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::shared_ptr<Link>& link() const { return link_; }

  /// What the service knew it by when that was last asked.
  std::string id() const;
  /// Runs `use` with the kernel's id; when the service has forgotten it, compiles it and runs `use`
  /// once more.
  void with_id(const CallControl& control, const std::function<void(const std::string&)>& use);

  Timings last_timings() const;
  void set_last_timings(Timings timings);
  Timings build_timings() const;

 private:
  std::string compile(const CallControl& control);

  const std::shared_ptr<Link> link_;
  const v1::CompileRequest request_;
  const std::vector<Parameter> parameters_;
  const std::vector<std::string> argument_sizes_;
  mutable std::mutex mutex_;
  std::string id_;
  Timings build_timings_;
  Timings last_timings_;
};

Timings from_wire(const v1::Timings& timings);

/// The arguments of one call on the wire, and what has to live until it ends.
struct PreparedCall {
  v1::RunRequest request;
  std::vector<std::shared_ptr<const RemoteState>> temporaries;  // arrays too large to be inline
  std::vector<std::optional<Array>> given;  // by parameter: the array an output is written to
  double upload_seconds = 0;
};

/// Checks the arguments against the parameters as far as no size has to be known, and packs them.
/// All arguments, or the inputs alone. Large arrays are streamed; unless they are to `outlive` this
/// process they belong to its session.
PreparedCall prepare_call(const std::shared_ptr<Link>& link, const std::string& kernel,
                          const std::vector<Parameter>& parameters,
                          const std::vector<Argument>& arguments, const CallOptions& options,
                          const CallControl& control, bool outlive = false);

/// A result of the reply as an array: `into` when it is given. Large ones are mapped where they
/// came as memory, or else streamed, and freed.
Array take_result(const std::shared_ptr<Link>& link, const v1::Result& result,
                  const RunReply& reply, const std::optional<Array>& into,
                  const CallControl& control);

}  // namespace detail
}  // namespace client
}  // namespace kiln

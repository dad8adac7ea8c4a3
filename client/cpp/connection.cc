// What a connection does that is one request and one answer. Requests are made from definitions
// alone, so a kernel that the service forgot can be compiled again from its request.
#include <utility>

#include <kiln/connection.h>

#include "client/cpp/compile_request.h"
#include "client/cpp/fail.h"
#include "client/cpp/kernel_state.h"
#include "client/cpp/link.h"
#include "client/cpp/profile.h"
#include "client/cpp/random_id.h"
#include "client/cpp/transfer.h"

#ifndef KILN_VERSION
#error "the version comes from the build"
#endif

namespace kiln {
inline namespace client {

namespace detail {

v1::CompileOptions to_wire(const BuildOptions& options) {
  v1::CompileOptions out;
  if (!options.automatic) out.set_auto_(v1::AUTO_MODE_NEVER);
  out.set_strict(options.strict);
  out.set_fast(options.fast);
  out.set_not_reproducible(!options.reproducible);
  out.set_check_nan(options.check_nan);
  return out;
}

}  // namespace detail

namespace {

using detail::request_of;

BuildOptions for_present_device(BuildOptions options, const SourceLocation& where) {
  if (!options.arch.empty()) {
    detail::fail_at(where, "ARCH",
                    "build takes the architecture from the device: use compile for {}",
                    options.arch);
  }
  return options;
}

/// Of a definition that is made of these arguments, before errors name it.
std::string name_of(const BuildOptions& options) {
  return options.name.empty() ? detail::kUnnamedKernel : options.name;
}

}  // namespace

std::string version() { return KILN_VERSION; }

Connection connect(const std::string& address, const ConnectOptions& options) {
  const detail::Endpoint endpoint = detail::endpoint_of(address, options);
  return Connection(std::make_shared<detail::Link>(endpoint.address, endpoint.options));
}

Kernel Connection::compile(const Definition& definition, const BuildOptions& options,
                           SourceLocation where) const {
  return detail::at_line(where, [&] {
    return Kernel(std::make_shared<detail::KernelState>(
        link_, request_of<v1::CompileRequest>(definition, options), definition.parameters()));
  });
}

Kernel Connection::compile(const Schedule& schedule, const std::vector<Tensor>& arguments,
                           const BuildOptions& options, SourceLocation where) const {
  return compile(Definition(schedule, arguments, name_of(options), where), options, where);
}

Kernel Connection::build(const Definition& definition, const BuildOptions& options,
                         SourceLocation where) const {
  return compile(definition, for_present_device(options, where), where);
}

Kernel Connection::build(const Schedule& schedule, const std::vector<Tensor>& arguments,
                         const BuildOptions& options, SourceLocation where) const {
  return build(Definition(schedule, arguments, name_of(options), where), options, where);
}

std::string Connection::lower(const Definition& definition, const LowerOptions& lower,
                              const BuildOptions& options, SourceLocation where) const {
  auto request = request_of<v1::LowerRequest>(definition, options);
  request.set_after(lower.after);
  request.set_auto_(lower.automatic);
  v1::LowerResponse response;
  detail::at_line(where, [&] {
    link_->call(link_->kernels(), &v1::KernelService::Stub::Lower, request, response);
  });
  return response.text();
}

std::string Connection::lower(const Schedule& schedule, const std::vector<Tensor>& arguments,
                              const LowerOptions& lower, const BuildOptions& options,
                              SourceLocation where) const {
  return this->lower(Definition(schedule, arguments, name_of(options), where), lower, options,
                     where);
}

RemoteArray Connection::upload(const Array& array, const std::string& device,
                               SourceLocation where) const {
  return upload(array, UploadOptions{.device = device}, where);
}

RemoteArray Connection::upload(const Array& array, const UploadOptions& options,
                               SourceLocation where) const {
  return detail::at_line(where, [&] {
    return RemoteArray(detail::upload(link_, array, options, link_->session(), {}));
  });
}

Job Connection::submit(const Definition& definition, const std::vector<Argument>& inputs,
                       const BuildOptions& options, const CallOptions& call,
                       SourceLocation where) const {
  return detail::at_line(where, [&] {
    v1::SubmitRequest request;
    *request.mutable_kernel() = request_of<v1::CompileRequest>(definition, options);
    const detail::PreparedCall prepared =
        detail::prepare_call(link_, request.kernel().source_map().kernel(), definition.parameters(),
                             inputs, call, {}, true);
    *request.mutable_run() = prepared.request;
    // Tried again under it, the job is the same.
    request.set_request_id(detail::random_id());
    v1::SubmitResponse response;
    link_->call(link_->jobs(), &v1::JobService::Stub::Submit, request, response);
    return job(response.job());
  });
}

Job Connection::job(const std::string& id) const { return Job(link_, id); }

Description Connection::describe() const {
  v1::DescribeResponse response;
  link_->call(link_->daemon(), &v1::DaemonService::Stub::Describe, v1::DescribeRequest(), response);
  Description description{.version = response.version(),
                          .boot_id = response.boot_id(),
                          .pid = response.pid(),
                          .devices = {},
                          .counters = {response.counters().begin(), response.counters().end()},
                          .components = {}};
  for (const v1::Device& device : response.devices()) {
    description.devices.push_back({.name = device.name(),
                                   .target = device.target(),
                                   .arch = device.arch(),
                                   .state = device.state(),
                                   .memory_bytes = device.memory_bytes(),
                                   .description = device.description()});
  }
  for (const v1::Component& component : response.components()) {
    description.components.push_back({component.name(), component.ok(), component.message()});
  }
  return description;
}

Holdings Connection::tensors(std::uint32_t limit) const {
  v1::ListTensorsRequest request;
  request.set_limit(limit);
  v1::ListTensorsResponse response;
  link_->call(link_->tensors(), &v1::TensorService::Stub::ListTensors, request, response);
  Holdings held{.tensors = {},
                .count = response.count(),
                .bytes = response.bytes(),
                .limit_bytes = response.limit_bytes()};
  for (const v1::TensorState& state : response.tensors()) {
    held.tensors.push_back({.id = state.tensor(),
                            .type = static_cast<DType>(state.type()),
                            .shape = {state.shape().begin(), state.shape().end()},
                            .bytes = state.bytes(),
                            .device = state.device(),
                            .session = state.session(),
                            .unused_seconds = static_cast<double>(state.unused_ms()) / 1000});
  }
  return held;
}

std::uint32_t Connection::free_tensors(const std::vector<std::string>& ids) const {
  v1::FreeRequest request;
  request.mutable_tensors()->Add(ids.begin(), ids.end());
  v1::FreeResponse response;
  link_->call(link_->tensors(), &v1::TensorService::Stub::Free, request, response);
  return response.freed();
}

const std::string& Connection::address() const { return link_->address(); }
void Connection::close() const { link_->close(); }

}  // namespace client
}  // namespace kiln

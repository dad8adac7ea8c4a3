// Lets calls in: who it is first, so that strangers learn nothing, then whether the daemon is
// ending, then the count that draining waits for. What a call says of itself stands in its
// metadata:
//
//   authorization: Bearer TOKEN    kiln-priority: low    traceparent: 00-...
#include "server/rpc/gate.h"

#include <optional>
#include <string_view>
#include <vector>

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include "runtime/core/error.h"
#include "server/trace.h"

namespace kiln::server {

namespace {

std::string_view metadata_of(const grpc::CallbackServerContext& context, const char* key) {
  const auto at = context.client_metadata().find(key);
  if (at == context.client_metadata().end()) return {};
  return {at->second.data(), at->second.size()};
}

Priority priority_of(const grpc::CallbackServerContext& context) {
  const std::string_view text = metadata_of(context, "kiln-priority");
  if (text.empty() || text == "normal") return Priority::Normal;
  if (text == "low") return Priority::Low;
  if (text == "high") return Priority::High;
  fail(ErrorKind::InvalidArgument, "PRIORITY",
       "the priority is {}, but must be low, normal or high", text.substr(0, 80));
}

/// When the caller stops waiting, on the monotonic clock.
Clock::time_point deadline_of(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  // gRPC's "no deadline" is a date so far away that the sum would overflow.
  if (left > std::chrono::hours(24 * 365)) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
}

std::optional<std::string> tenant_by_token(const grpc::CallbackServerContext& context,
                                           TokenFile& tokens) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto at = begin; at != end; ++at) {
    const std::string_view value(at->second.data(), at->second.size());
    if (value.substr(0, kScheme.size()) != kScheme) continue;
    if (auto tenant = tokens.tenant_of(value.substr(kScheme.size()))) return tenant;
  }
  return std::nullopt;
}

/// The common name of a certificate that TLS has verified; nothing when none was shown.
std::optional<std::string> tenant_by_certificate(const grpc::CallbackServerContext& context) {
  const auto shown = context.auth_context();
  if (!shown || !shown->IsPeerAuthenticated()) return std::nullopt;
  const auto names = shown->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  if (names.size() != 1 || names.front().empty()) return std::nullopt;
  return std::string(names.front().data(), names.front().size());
}

}  // namespace

Principal Gate::identify(const grpc::CallbackServerContext& context) {
  Principal principal{.tenant = "", .client = context.peer()};
  if (!proofs_.tokens && !proofs_.by_certificate) return principal;
  std::optional<std::string> tenant;
  if (proofs_.tokens) tenant = tenant_by_token(context, *proofs_.tokens);
  if (!tenant && proofs_.by_certificate) tenant = tenant_by_certificate(context);
  if (tenant) {
    principal.tenant = *std::move(tenant);
    return principal;
  }
  if (proofs_.tokens) {
    fail(ErrorKind::Unauthenticated, "TOKEN",
         "this daemon asks for a token, and the one given is missing or wrong");
  }
  fail(ErrorKind::Unauthenticated, "CERTIFICATE",
       "the client's certificate has no common name, by which this daemon knows tenants");
}

Admission Gate::enter(const grpc::CallbackServerContext& context) {
  Admission admission;
  admission.caller.principal = identify(context);
  admission.pass = enter();
  admission.caller.priority = priority_of(context);
  admission.caller.trace = trace_id_of(metadata_of(context, "traceparent"));
  admission.caller.deadline = deadline_of(context);
  return admission;
}

std::shared_ptr<void> Gate::enter() {
  if (closed_.load()) {
    fail(ErrorKind::Unavailable, "DRAINING", "the daemon is ending and takes no more calls");
  }
  sessions_.touch();
  active_.fetch_add(1);
  // A pass is its destructor: however a call ends, it is counted out once.
  return {nullptr, [this](void*) {
            active_.fetch_sub(1);
            sessions_.touch();
          }};
}

void Gate::close() {
  std::vector<std::function<void()>> listeners;
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true);
    for (const auto& [number, listener] : listeners_)
      listeners.push_back(listener);
  }
  for (const auto& listener : listeners)
    listener();
}

uint64_t Gate::on_close(std::function<void()> listener) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
    if (!closed_.load()) {
      listeners_[number] = std::move(listener);
      return number;
    }
  }
  listener();
  return number;
}

void Gate::forget(uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

}  // namespace kiln::server

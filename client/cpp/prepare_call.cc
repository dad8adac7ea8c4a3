// Packs arguments: small arrays into the request, large ones as streams before it, and outputs as
// what the caller gave or asks for. All checks come first, so that a wrong call sends nothing.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "client/cpp/fail.h"
#include "client/cpp/kernel_state.h"
#include "client/cpp/transfer.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// Bytes of arrays that travel inside a call.
struct InlineLimits {
  std::size_t each = 1 << 20;
  std::size_t all = 3 << 20;  // of the 4 MiB that a message may have
};
constexpr InlineLimits kLocalLimits{.each = kLocalInline, .all = 48 << 10};  // of a packet

const std::vector<std::int64_t>& shape_of(const Argument& argument) {
  return std::visit(
      [](const auto& array) -> const auto& { return array.shape(); }, argument);
}

DType dtype_of(const Argument& argument) {
  return std::visit([](const auto& array) { return array.dtype(); }, argument);
}

/// Type and rank: extents are the service's to check, which knows the sizes.
void check_argument(const Argument& argument, const Parameter& parameter,
                    const std::string& kernel) {
  if (dtype_of(argument) != parameter.type) {
    fail(ErrorKind::InvalidArgument, "ARGUMENT_TYPE", "argument {} of {} is {}, but must be {}",
         parameter.name, kernel, name_of(dtype_of(argument)), name_of(parameter.type));
  }
  const std::size_t rank = shape_of(argument).size();
  if (rank != parameter.shape.size()) {
    fail(ErrorKind::InvalidArgument, "ARGUMENT_RANK",
         "argument {} of {} has {} dimension{}, but must have {}", parameter.name, kernel, rank,
         rank == 1 ? "" : "s", parameter.shape.size());
  }
}

[[noreturn]] void fail_count(const std::vector<Parameter>& parameters, std::size_t given,
                             const std::string& kernel) {
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const Parameter& parameter : parameters)
    names.push_back(parameter.name);
  fail(ErrorKind::InvalidArgument, "ARGUMENT_COUNT", "{} takes {} argument{} ({}), but got {}",
       kernel, names.size(), names.size() == 1 ? "" : "s", fmt::join(names, ", "), given);
}

/// On the service each array has memory of its own, so only here it is seen that one array is to
/// take two outputs.
void refuse_shared_outputs(const std::vector<Parameter>& parameters,
                           const std::vector<Argument>& arguments, const std::string& kernel) {
  std::map<const std::byte*, std::string> written;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto* array = std::get_if<Array>(&arguments[p]);
    if (!parameters[p].output || array == nullptr || array->size() == 0) continue;
    const auto [first, is_new] = written.emplace(array->bytes().data(), parameters[p].name);
    if (is_new) continue;
    fail(ErrorKind::InvalidArgument, "ARGUMENT_OVERLAP",
         "arguments {} and {} of {} are both written, but share memory", first->second,
         parameters[p].name, kernel);
  }
}

class CallPacker {
 public:
  CallPacker(const std::shared_ptr<Link>& link, const CallControl& control, bool outlive,
             PreparedCall& call)
      : link_(link),
        control_(control),
        outlive_(outlive),
        limits_(!outlive && link->local() ? kLocalLimits : InlineLimits()),
        call_(call) {}

  void input(const Array& array) {
    const std::size_t bytes = array.bytes().size();
    v1::Argument& out = *call_.request.add_arguments();
    if (bytes > limits_.each || inline_bytes_ + bytes > limits_.all) {
      out.set_tensor(stream(array));
      return;
    }
    inline_bytes_ += bytes;
    set_layout(*out.mutable_inline_(), array);
    out.mutable_inline_()->set_data(array.bytes().data(), bytes);
  }

  void input(const RemoteArray& array) { call_.request.add_arguments()->set_tensor(array.id()); }

  void output(std::size_t parameter, const Array& array) {
    set_layout(*call_.request.add_arguments()->mutable_inline_(), array);
    call_.given[parameter] = array;
  }

  void output(std::size_t, const RemoteArray& array) {
    call_.request.add_arguments()->set_tensor(array.id());
  }

  void new_output() { call_.request.add_arguments()->mutable_output(); }

 private:
  static void set_layout(v1::Inline& out, const Array& array) {
    out.set_type(static_cast<v1::DataType>(array.dtype()));
    for (const std::int64_t size : array.shape())
      out.add_shape(size);
  }

  /// Uploads a large array as a tensor of the session, or of nobody where it must outlive the
  /// session (a job's). It is freed with the call.
  std::string stream(const Array& array) {
    const auto start = std::chrono::steady_clock::now();
    const std::string owner = outlive_ ? "" : link_->session();
    call_.temporaries.push_back(upload(link_, array, {.device = ""}, owner, control_));
    call_.upload_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return call_.temporaries.back()->id;
  }

  const std::shared_ptr<Link>& link_;
  const CallControl& control_;
  const bool outlive_;
  const InlineLimits limits_;
  PreparedCall& call_;
  std::size_t inline_bytes_ = 0;
};

}  // namespace

PreparedCall prepare_call(const std::shared_ptr<Link>& link, const std::string& kernel,
                          const std::vector<Parameter>& parameters,
                          const std::vector<Argument>& arguments, const CallOptions& options,
                          const CallControl& control, bool outlive) {
  const auto inputs = static_cast<std::size_t>(
      std::count_if(parameters.begin(), parameters.end(), [](const auto& p) { return !p.output; }));
  const bool all = arguments.size() == parameters.size();
  if (!all && arguments.size() != inputs) fail_count(parameters, arguments.size(), called(kernel));

  // All checks first, so that a wrong call streams nothing.
  std::size_t next = 0;
  for (const Parameter& parameter : parameters) {
    if (all || !parameter.output) check_argument(arguments[next++], parameter, called(kernel));
  }
  if (all) refuse_shared_outputs(parameters, arguments, called(kernel));
  PreparedCall call;
  call.given.resize(parameters.size());
  CallPacker packer(link, control, outlive, call);
  next = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].output) {
      std::visit([&](const auto& array) { packer.input(array); }, arguments[next++]);
    } else if (all) {
      std::visit([&](const auto& array) { packer.output(p, array); }, arguments[next++]);
    } else {
      packer.new_output();
    }
  }
  call.request.mutable_sizes()->insert(options.sizes.begin(), options.sizes.end());
  call.request.set_device(options.device);
  return call;
}

Array take_result(const std::shared_ptr<Link>& link, const v1::Result& result,
                  const RunReply& reply, const std::optional<Array>& into,
                  const CallControl& control) {
  const auto type = static_cast<DType>(result.type());
  const std::vector<std::int64_t> shape(result.shape().begin(), result.shape().end());
  if (result.has_region()) {
    if (result.region().index() >= reply.memory.size()) {
      fail(ErrorKind::Internal, "RESULT", "the service sent no memory for an output");
    }
    return array_in(reply.memory[result.region().index()], type, shape, into);
  }
  const Array array = into ? *into : array_to_fill(type, shape);
  if (result.has_tensor()) {
    const RemoteState tensor(link, result.tensor(), array.dtype(), array.shape());
    download(*link, tensor.id, array, control);
    return array;
  }
  if (result.data().size() != array.bytes().size()) {
    fail(ErrorKind::Internal, "RESULT_SIZE", "the service sent {} bytes for an output of {}",
         result.data().size(), array.bytes().size());
  }
  if (!result.data().empty()) {
    std::memcpy(array.bytes().data(), result.data().data(), result.data().size());
  }
  return array;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

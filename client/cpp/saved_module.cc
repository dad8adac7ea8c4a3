// Modules in files: the compile requests of kernels, each with its SHA-256. Code is not saved: the
// service has it cached, or compiles it for the device that it has.
#include "client/cpp/saved_module.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <kiln/connection.h>
#include <openssl/sha.h>

#include "client/cpp/definition_state.h"
#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr std::string_view kFormat = "kiln module 1";

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::InvalidArgument, "MODULE_FILE", format, std::forward<Args>(args)...);
}

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

/// The same bytes for the same message.
std::string serialized(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    // protobuf may write a map in any order, and the digest is of the bytes.
    out.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

std::string bytes_of(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) refuse("cannot read the module {}: {}", path, std::strerror(errno));
  return bytes;
}

}  // namespace

void save_module(const std::string& path, const std::vector<const KernelState*>& kernels) {
  v1::SavedModule module;
  module.set_format(std::string(kFormat));
  for (const KernelState* kernel : kernels) {
    v1::SavedKernel& saved = *module.add_kernels();
    saved.set_request(serialized(kernel->request()));
    saved.set_sha256(sha256(saved.request()));
    for (const std::string& size : kernel->argument_sizes())
      saved.add_arguments(size);
  }
  // Renamed when it is whole, so that a module is there or not.
  const std::string part = path + ".part";
  errno = 0;
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << module.SerializeAsString();
  out.close();
  if (!out || std::rename(part.c_str(), path.c_str()) != 0) {
    refuse("cannot write the module {}: {}", path, std::strerror(errno));
  }
}

std::vector<SavedKernel> read_module(const std::string& path) {
  v1::SavedModule module;
  const bool is_module =
      module.ParseFromString(bytes_of(path)) && module.format().starts_with("kiln module");
  if (!is_module) refuse("{} is no module that export_library of Kiln saved", path);
  if (module.format() != kFormat) {
    refuse("{} was saved by another version of Kiln ({}); build it again", path, module.format());
  }
  std::vector<SavedKernel> kernels;
  for (const v1::SavedKernel& saved : module.kernels()) {
    SavedKernel& kernel = kernels.emplace_back();
    const bool is_whole = sha256(saved.request()) == saved.sha256() &&
                          kernel.request.ParseFromString(saved.request());
    if (!is_whole) refuse("the module {} is damaged; build it again", path);
    kernel.argument_sizes = {saved.arguments().begin(), saved.arguments().end()};
  }
  return kernels;
}

}  // namespace detail

Kernels::operator Kernel() const {
  if (size() != 1) {
    detail::fail(ErrorKind::InvalidArgument, "KERNEL_COUNT",
                 "the module holds {} kernels: take one by get_function(name)", size());
  }
  return front();
}

Kernel Kernels::get_function(std::string_view name) const {
  std::string names;
  for (const Kernel& kernel : *this) {
    if (kernel.name() == name) return kernel;
    names += (names.empty() ? "" : ", ") + kernel.name();
  }
  detail::fail(ErrorKind::NotFound, "FUNCTION", "there is no function {}; there are {}", name,
               names);
}

void Kernel::export_library(const std::string& path) const {
  detail::save_module(path, {state_.get()});
}

void Kernels::export_library(const std::string& path) const {
  std::vector<const detail::KernelState*> states;
  for (const Kernel& kernel : *this)
    states.push_back(kernel.state().get());
  detail::save_module(path, states);
}

Kernels Connection::load_module(const std::string& path) const {
  Kernels kernels;
  for (detail::SavedKernel& saved : detail::read_module(path)) {
    auto definition = std::make_shared<detail::DefinitionState>();
    definition->kernel.definition = saved.request.definition();
    definition->kernel.names = saved.request.source_map();
    const std::vector<Parameter> parameters = Definition(std::move(definition)).parameters();
    kernels.emplace_back(std::make_shared<detail::KernelState>(
        link_, std::move(saved.request), parameters, std::move(saved.argument_sizes)));
  }
  return kernels;
}

}  // namespace client
}  // namespace kiln

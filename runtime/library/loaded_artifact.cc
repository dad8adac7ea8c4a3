// Kernels of files in this process. Those of one device share it, and so its threads; it goes with
// the last of them. On the CPU a call works on the caller's memory; for a GPU its inputs are copied
// there and its outputs back.
#include "runtime/library/loaded_artifact.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "runtime/library/compact_copies.h"

namespace kiln {
namespace {

/// A folder can be opened as a file, and says what it is when it is read.
std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  bool is_whole = in.is_open();
  try {
    bytes.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  } catch (const std::ios_base::failure&) {
    is_whole = false;
  }
  if (!is_whole) {
    fail(ErrorKind::NotFound, "ARTIFACT_FILE", "{} cannot be read: {}", path,
         std::strerror(errno != 0 ? errno : EIO));
  }
  return bytes;
}

/// The device of this process for a target.
std::shared_ptr<Device> shared_device(TargetKind target, int threads, int gpu) {
  static std::mutex mutex;
  static std::map<std::tuple<bool, int>, std::weak_ptr<Device>> devices;
  const bool is_host = traits_of(target).is_host;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Device>& known = devices[{is_host, is_host ? threads : gpu}];
  std::shared_ptr<Device> device = known.lock();
  if (!device) {
    device = is_host ? open_cpu_device({.threads = threads}) : open_cuda_device(gpu);
    known = device;
  }
  return device;
}

ArgumentSlot slot_of(const KilnTensor& tensor, size_t position, const KernelNames& names) {
  ArgumentSlot slot;
  slot.given = tensor.rank >= 0;
  if (!slot.given) return slot;
  const std::optional<DType> type = dtype_from_number(tensor.dtype);
  if (!type) {
    fail(ErrorKind::InvalidArgument, "ARGUMENT_TYPE",
         "argument {} of {} has element type {}, which there is not",
         position < names.parameters.size() ? names.parameters[position] : std::to_string(position),
         called(names.kernel), tensor.dtype);
  }
  slot.layout.type = *type;
  const auto rank = static_cast<size_t>(tensor.rank);
  slot.layout.shape.assign(tensor.shape, tensor.shape + rank);
  if (tensor.strides != nullptr) slot.layout.strides.assign(tensor.strides, tensor.strides + rank);
  return slot;
}

bool is_empty(const std::vector<int64_t>& shape) {
  return std::ranges::find(shape, 0) != shape.end();
}

}  // namespace

LoadedArtifact::LoadedArtifact(const std::string& path, int threads, int gpu) {
  ExportedKernel file = deserialize_exported(read_file(path), path);
  names_ = std::move(file.names);
  device_ = shared_device(file.artifact.target, threads, gpu);
  try {
    kernel_ = device_->load(std::make_shared<const Artifact>(std::move(file.artifact)));
  } catch (const Error& error) {
    throw Error(error.kind(), error.reason(), fmt::format("{}: {}", path, error.message()));
  }
}

BoundCall LoadedArtifact::bind(std::span<const KilnTensor> tensors,
                               std::span<const KilnSize> sizes) const {
  std::vector<ArgumentSlot> slots;
  for (size_t i = 0; i < tensors.size(); ++i)
    slots.push_back(slot_of(tensors[i], i, names_));
  std::map<std::string, int64_t> given;
  for (const KilnSize& size : sizes)
    given.emplace(size.name, size.value);
  try {
    return bind_arguments(artifact(), names_, slots, given);
  } catch (const Error& error) {
    // By now the strides are found to be sound; what has no code for them is given copies.
    if (error.reason() != "NO_VARIANT") throw;
  }
  for (ArgumentSlot& slot : slots)
    slot.layout.strides.clear();
  return bind_arguments(artifact(), names_, slots, given);
}

double LoadedArtifact::call(std::span<const KilnTensor> tensors,
                            std::span<const KilnSize> sizes) const {
  const BoundCall bound = bind(tensors, sizes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool has_memory =
        tensors[i].rank >= 0 && (tensors[i].data != nullptr || is_empty(bound.shapes[i]));
    if (has_memory) continue;
    fail(ErrorKind::InvalidArgument, "ARGUMENT_MISSING", "argument {} of {} has no memory",
         names_.parameters[i], called(names_.kernel));
  }
  const CompactCopies copies(artifact().parameters, tensors, bound.shapes);
  const double seconds = traits_of(artifact().target).is_host
                             ? run(copies.addresses(), bound)
                             : run_on_gpu(copies.addresses(), bound);
  copies.commit();
  return seconds;
}

double LoadedArtifact::run(std::span<void* const> addresses, const BoundCall& bound) const {
  return device_->run(*kernel_, {.tensors = addresses, .bound = &bound, .names = &names_});
}

double LoadedArtifact::run_on_gpu(std::span<void* const> addresses, const BoundCall& bound) const {
  struct Copy {
    std::unique_ptr<DeviceBuffer> buffer;
    int64_t bytes = 0;
  };
  // What is passed twice lies once on the device, so that a call in place is one there too.
  std::map<void*, Copy> copies;
  const std::vector<Parameter>& parameters = artifact().parameters;
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < addresses.size(); ++i) {
    bytes.push_back(byte_size(parameters[i].type, bound.shapes[i]));
    int64_t& largest = copies[addresses[i]].bytes;
    largest = std::max({largest, bytes[i], int64_t{1}});
  }
  for (auto& [address, copy] : copies)
    copy.buffer = device_->allocate(copy.bytes);
  std::vector<void*> on_device;
  for (size_t i = 0; i < addresses.size(); ++i) {
    on_device.push_back(copies[addresses[i]].buffer->data());
    if (!parameters[i].is_output) device_->copy_in(on_device[i], addresses[i], bytes[i]);
  }
  const double seconds = run(on_device, bound);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (parameters[i].is_output) device_->copy_out(addresses[i], on_device[i], bytes[i]);
  }
  return seconds;
}

}  // namespace kiln

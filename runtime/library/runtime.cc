// The functions of kiln/runtime.h. No exception leaves one: what went wrong is kept for the thread.
#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include <kiln/runtime.h>

#include "runtime/core/error.h"
#include "runtime/library/loaded_artifact.h"

struct KilnArtifact {
  KilnArtifact(const char* path, int threads, int gpu) : loaded(path, threads, gpu) {
    for (const kiln::Parameter& parameter : loaded.artifact().parameters) {
      std::string& text = shapes.emplace_back();
      for (const kiln::SizeExpr& extent : parameter.shape)
        text += (text.empty() ? "" : ", ") + extent.describe(loaded.names().sizes);
    }
  }

  kiln::LoadedArtifact loaded;
  std::vector<std::string> shapes;  // of the parameters, as written
};

namespace {

struct LastError {
  std::string message = "nothing failed";
  std::string reason;
  std::string kind;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

void keep(kiln::ErrorKind kind, const std::string& reason, const std::string& message) {
  last_error() = {message, reason, std::string(kiln::name_of(kind))};
}

/// Whether `work` came to its end.
template <typename Work>
bool ends(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const kiln::Error& error) {
    keep(error.kind(), error.reason(), error.message());
  } catch (const std::bad_alloc&) {
    keep(kiln::ErrorKind::ResourceExhausted, "MEMORY", "out of memory");
  } catch (const std::exception& error) {
    keep(kiln::ErrorKind::Internal, "INTERNAL", error.what());
  }
  return false;
}

std::span<const KilnTensor> span_of(const KilnTensor* tensors, int32_t count) {
  return {tensors, static_cast<size_t>(std::max(count, 0))};
}
std::span<const KilnSize> span_of(const KilnSize* sizes, int32_t count) {
  return {sizes, static_cast<size_t>(std::max(count, 0))};
}

}  // namespace

extern "C" {

KilnError kiln_runtime_error() {
  const LastError& error = last_error();
  return {error.message.c_str(), error.reason.c_str(), error.kind.c_str()};
}

const char* kiln_runtime_version() { return KILN_VERSION; }

KilnArtifact* kiln_artifact_load(const char* path, int32_t threads, int32_t gpu) {
  KilnArtifact* artifact = nullptr;
  ends([&] { artifact = new KilnArtifact(path, std::max(threads, 0), gpu); });
  return artifact;
}

void kiln_artifact_free(KilnArtifact* artifact) { delete artifact; }

const char* kiln_artifact_name(const KilnArtifact* artifact) {
  return artifact->loaded.names().kernel.c_str();
}

const char* kiln_artifact_target(const KilnArtifact* artifact) {
  return kiln::name_of(artifact->loaded.artifact().target).data();
}

const char* kiln_artifact_arch(const KilnArtifact* artifact) {
  return artifact->loaded.artifact().arch.c_str();
}

int32_t kiln_artifact_parameters(const KilnArtifact* artifact) {
  return static_cast<int32_t>(artifact->loaded.artifact().parameters.size());
}

KilnParameter kiln_artifact_parameter(const KilnArtifact* artifact, int32_t index) {
  const auto at = static_cast<size_t>(index);
  const kiln::Parameter& parameter = artifact->loaded.artifact().parameters[at];
  return {artifact->loaded.names().parameters[at].c_str(), artifact->shapes[at].c_str(),
          static_cast<int32_t>(parameter.type), static_cast<int32_t>(parameter.shape.size()),
          parameter.is_output ? 1 : 0};
}

int32_t kiln_artifact_sizes(const KilnArtifact* artifact) {
  return artifact->loaded.artifact().size_count;
}

const char* kiln_artifact_size(const KilnArtifact* artifact, int32_t index) {
  return artifact->loaded.names().sizes[static_cast<size_t>(index)].c_str();
}

int32_t kiln_artifact_shapes(const KilnArtifact* artifact, const KilnTensor* tensors, int32_t count,
                             const KilnSize* sizes, int32_t size_count, int64_t* shapes) {
  const bool ended = ends([&] {
    const kiln::BoundCall bound =
        artifact->loaded.bind(span_of(tensors, count), span_of(sizes, size_count));
    for (const std::vector<int64_t>& shape : bound.shapes)
      shapes = std::copy(shape.begin(), shape.end(), shapes);
  });
  return ended ? 0 : -1;
}

int32_t kiln_artifact_call(const KilnArtifact* artifact, const KilnTensor* tensors, int32_t count,
                           const KilnSize* sizes, int32_t size_count, double* seconds) {
  const bool ended = ends([&] {
    const double taken = artifact->loaded.call(span_of(tensors, count), span_of(sizes, size_count));
    if (seconds != nullptr) *seconds = taken;
  });
  return ended ? 0 : -1;
}

}  // extern "C"

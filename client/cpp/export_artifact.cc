// Compiled kernels as files: the service packs them, and who asks for one writes it.
#include "client/cpp/export_artifact.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "client/cpp/fail.h"
#include "kiln/v1/artifact.grpc.pb.h"

namespace kiln {
inline namespace client {

namespace {

/// Renamed when it is whole, so that a file is there or not.
void write_whole(const std::string& path, const std::string& bytes) {
  const std::string part = path + ".part";
  errno = 0;
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (out && std::rename(part.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  std::remove(part.c_str());
  detail::fail(ErrorKind::InvalidArgument, "ARTIFACT_FILE", "cannot write the artifact {}: {}",
               path, why);
}

}  // namespace

std::string detail::exported(KernelState& kernel) {
  Link& link = *kernel.link();
  v1::ExportResponse response;
  v1::ArtifactService::Stub stub(
      std::shared_ptr<grpc::ChannelInterface>(kernel.link(), &link.channel()));
  kernel.with_id({}, [&](const std::string& id) {
    v1::ExportRequest request;
    request.set_kernel_id(id);
    link.call(stub, &v1::ArtifactService::Stub::Export, request, response);
  });
  return std::move(*response.mutable_file());
}

void Kernel::export_artifact(const std::string& path, SourceLocation where) const {
  detail::at_line(where, [&] { write_whole(path, detail::exported(*state_)); });
}

}  // namespace client
}  // namespace kiln

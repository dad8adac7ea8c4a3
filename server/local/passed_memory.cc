// Memory between clients and workers without a copy, and without trust. Mapped is only what can
// neither shrink, which would end a process that reads it, nor change, since a kernel checks an
// index and then uses it. All else is read through its descriptor, which faults nobody.
//
//   memfd sealed against shrinking, growing and writing  ->  mapped     any other memfd  ->  copied
#include "server/local/passed_memory.h"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

std::shared_ptr<Slice> copy_of(ArenaPool& arenas, const Fd& memory, int64_t bytes) {
  std::shared_ptr<Slice> slice = arenas.allocate(bytes);
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::pread(memory.get(), slice->data() + done,
                                  static_cast<size_t>(bytes - done), static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      fail(ErrorKind::InvalidArgument, "REGION",
           "{} bytes can be read of the memory with the contents, but their shape needs {}", done,
           bytes);
    }
    done += count;
  }
  return slice;
}

}  // namespace

std::shared_ptr<Slice> take_memory(ArenaPool& arenas, Fd memory, int64_t bytes) {
  if (bytes == 0) return arenas.allocate(0);
  if (is_sealed_memory(memory, bytes)) return arenas.adopt(std::move(memory), bytes);
  // Of anything but memory, reading could take for ever.
  if (::fcntl(memory.get(), F_GET_SEALS) < 0) {
    fail(ErrorKind::InvalidArgument, "REGION",
         "the contents came as a descriptor that is no memfd");
  }
  return copy_of(arenas, memory, bytes);
}

Fd show_memory(ArenaPool& arenas, const Slice& slice, int64_t bytes, const std::string& owner) {
  if (!arenas.freeze(slice, owner)) {
    return make_sealed_memfd(
        "kiln-contents", {reinterpret_cast<const char*>(slice.data()), static_cast<size_t>(bytes)});
  }
  Fd shown(::fcntl(slice.arena()->fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!shown) {
    fail(ErrorKind::ResourceExhausted, "HOST_DESCRIPTORS",
         "the daemon has no descriptor left for a result");
  }
  return shown;
}

}  // namespace kiln::server

#pragma once

#include <memory>
#include <string>

#include "server/ipc/fd.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// The first `bytes` of memory that a client passed along: the memory itself where nobody can
/// change it any more, else a copy. Throws InvalidArgument REGION, and what the pool throws.
std::shared_ptr<Slice> take_memory(ArenaPool& arenas, Fd memory, int64_t bytes);

/// Memory that begins with the `bytes` of the slice, for its owner to read: the slice's own, which
/// is frozen by that, or a copy where others could see it, too.
Fd show_memory(ArenaPool& arenas, const Slice& slice, int64_t bytes, const std::string& owner);

}  // namespace kiln::server

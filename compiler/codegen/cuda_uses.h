#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"

namespace kiln::codegen {

using BufferSet = std::unordered_set<const ir::Buffer*>;

/// What a launch reads and writes.
BufferSet used_buffers(const ir::Stmt& body);
/// What vectors move to and from.
BufferSet vector_buffers(const ir::Stmt& body);
/// Whether a loop chooses among the elements of these buffers.
bool chooses_among(const ir::For& loop, const BufferSet& buffers);

/// Of products of matrices the factors, whose rows are loaded at once, and the sums.
struct MatrixBuffers {
  BufferSet factors;
  BufferSet sums;
};
MatrixBuffers matrix_buffers(const ir::Stmt& body, const std::vector<const ir::For*>& axes);

constexpr int64_t kSharedAlignment = 16;

/// Of an array in C, which has an element; one of none is never touched.
int64_t elements_of(const ir::Buffer& buffer);
/// Of an array in shared memory, up to where the next may begin.
int64_t aligned_bytes(const ir::Buffer& buffer);
/// What a launch must ask for: all of its shared memory, or nothing.
int64_t dynamic_shared_bytes(const ir::LaunchNest& nest);

/// What a launch has to do with checks that fire in its call: after one, the launches that follow
/// would work on memory that nobody wrote.
struct LaunchOrder {
  bool is_before_others = false;  // its checks tell those that follow
  bool is_after_checks = false;   // it does nothing once one has fired
};

/// Of each launch, in order. Within a loop of the host, each follows all.
std::vector<LaunchOrder> orders_of(const ir::Stmt& body);

}  // namespace kiln::codegen

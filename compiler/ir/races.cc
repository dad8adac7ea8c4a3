// Whether threads of a GPU need what nothing orders: of each element the last writer and the
// readers are kept, with block and number of barriers. Blocks of one launch have no order, threads
// of a block that of the barriers between them.
//
//   s[t] = A[t]    C[t] = s[31 - t]    ->    thread 1 reads s[30], which thread 30 may not have
//                                            stored: a race
//
// It follows a run and knows nothing of indices, so it is a check of insert_barriers that does not
// share its reasoning.
#include "compiler/ir/races.h"

#include <algorithm>

namespace kiln::ir {

void GridThread::set(ThreadAxis axis, int64_t index) {
  constexpr int kBitsOfBlock = 21;
  constexpr int kBitsOfThread = 16;
  const auto put = [index](int64_t& id, int place, int bits) {
    const int64_t mask = ((int64_t{1} << bits) - 1) << (place * bits);
    id = (id & ~mask) | ((index << (place * bits)) & mask);
  };
  switch (axis) {
    case ThreadAxis::BlockX: return put(block, 0, kBitsOfBlock);
    case ThreadAxis::BlockY: return put(block, 1, kBitsOfBlock);
    case ThreadAxis::BlockZ: return put(block, 2, kBitsOfBlock);
    case ThreadAxis::ThreadX: return put(thread, 0, kBitsOfThread);
    case ThreadAxis::ThreadY: return put(thread, 1, kBitsOfThread);
    case ThreadAxis::ThreadZ: return put(thread, 2, kBitsOfThread);
    default: return;
  }
}

bool AccessHistory::read(int64_t element, GridThread by, Moment now) {
  Element& at = elements_[element];
  if (at.written.launch == now.launch) {
    if (at.writer.block != by.block) return false;
    const bool is_own =
        at.writer.thread == by.thread || std::ranges::find(at.same, by.thread) != at.same.end();
    if (at.written.barrier == now.barrier && !is_own) return false;
  }
  const bool is_first_of_launch = at.read.launch != now.launch;
  if (is_first_of_launch || at.read.barrier != now.barrier) {
    const bool other_block = !is_first_of_launch && at.reader.block != by.block;
    at.by_blocks = !is_first_of_launch && (at.by_blocks || other_block);
    at.by_threads = false;
    at.read = now;
    at.reader = by;
    return true;
  }
  at.by_blocks = at.by_blocks || at.reader.block != by.block;
  at.by_threads = at.by_threads || at.reader.thread != by.thread;
  return true;
}

bool AccessHistory::write(int64_t element, GridThread by, Moment now, bool changes) {
  Element& at = elements_[element];
  const bool is_same_launch = at.written.launch == now.launch;
  const bool is_same_block = is_same_launch && at.writer.block == by.block;
  if (!changes) {
    if (is_same_block && at.written.barrier == now.barrier) at.same.push_back(by.thread);
    return true;
  }
  if (is_same_launch) {
    if (!is_same_block) return false;
    if (at.written.barrier == now.barrier && at.writer.thread != by.thread) return false;
  }
  if (at.read.launch == now.launch) {
    if (at.by_blocks || at.reader.block != by.block) return false;
    const bool other = at.by_threads || at.reader.thread != by.thread;
    if (at.read.barrier == now.barrier && other) return false;
  }
  at.written = now;
  at.writer = by;
  at.same.clear();
  return true;
}

}  // namespace kiln::ir

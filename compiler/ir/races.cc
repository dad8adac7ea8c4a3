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

#include "compiler/ir/mutator.h"

namespace kiln::ir {

namespace {

constexpr int kBitsOfBlock = 21;
constexpr int kBitsOfThread = 16;

class FindWaits : public Visitor {
 public:
  Waits found;

 private:
  using Visitor::visit;
  void visit(const Barrier&) override { found.for_block = true; }
  void visit(const Shuffle&) override { found.for_warp = true; }
};

}  // namespace

Waits waits_in(const Stmt& stmt) {
  FindWaits walk;
  walk(stmt);
  return walk.found;
}

int64_t GridThread::along_x() const { return thread & ((int64_t{1} << kBitsOfThread) - 1); }

void GridThread::set(ThreadAxis axis, int64_t index) {
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

AccessHistory::Element& AccessHistory::at_place(int64_t element) {
  const auto page = static_cast<size_t>(element / kPage);
  if (page >= pages_.size()) pages_.resize(page + 1);
  if (!pages_[page]) pages_[page] = std::make_unique<Element[]>(kPage);
  return pages_[page][static_cast<size_t>(element % kPage)];
}

bool AccessHistory::read(int64_t element, GridThread by, Moment now) {
  Element& at = at_place(element);
  if (at.written.launch == now.launch) {
    if (at.writer.block != by.block || at.others_blocks) return false;
    const bool is_writer = at.writer.thread == by.thread && !at.others_threads;
    const bool is_own = is_writer || std::ranges::find(at.same, by.thread) != at.same.end();
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

bool AccessHistory::is_read_by_others(const Element& at, GridThread by, Moment now) {
  if (at.read.launch != now.launch) return false;
  if (at.by_blocks || at.reader.block != by.block) return true;
  return at.read.barrier == now.barrier && (at.by_threads || at.reader.thread != by.thread);
}

bool AccessHistory::write(int64_t element, GridThread by, Moment now, bool changes) {
  Element& at = at_place(element);
  const bool is_same_launch = at.written.launch == now.launch;
  const bool is_same_block = is_same_launch && at.writer.block == by.block && !at.others_blocks;
  if (!changes) {
    if (is_same_block && at.written.barrier == now.barrier) at.same.push_back(by.thread);
    return true;
  }
  if (is_same_launch) {
    if (!is_same_block) return false;
    const bool others = at.others_threads || at.writer.thread != by.thread;
    if (at.written.barrier == now.barrier && others) return false;
  }
  if (is_read_by_others(at, by, now)) return false;
  at.written = now;
  at.writer = by;
  at.same.clear();
  at.in_one_piece = at.others_blocks = at.others_threads = false;
  return true;
}

bool AccessHistory::change(int64_t element, GridThread by, Moment now) {
  Element& at = at_place(element);
  if (at.written.launch != now.launch || !at.in_one_piece) {
    if (!write(element, by, now, true)) return false;
    at.in_one_piece = true;
    return true;
  }
  if (is_read_by_others(at, by, now)) return false;
  at.others_blocks = at.others_blocks || at.writer.block != by.block;
  const bool since = at.written.barrier == now.barrier;
  at.others_threads = since && (at.others_threads || at.writer.thread != by.thread);
  at.written = now;
  at.writer = by;
  at.same.clear();
  return true;
}

}  // namespace kiln::ir

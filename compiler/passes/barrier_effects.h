#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/passes/shared_buffers.h"

namespace kiln::passes {

/// Of a buffer whose copies the iterations of a loop use in turn: which of them, a bit each. The
/// first one is that of this iteration, then that of the next, and so on.
using Copies = uint32_t;
constexpr Copies kAllCopies = ~Copies{0};

/// How the iterations of a loop take turns with the copies of a buffer.
struct Turns {
  ir::VarRef loop;
  int64_t copies = 0;
  size_t dimension = 0;  // whose index says which one
  Copies read = 0;       // by an iteration

  /// Those that an access with these indices touches.
  Copies touched(const std::vector<ir::Expr>& indices) const;
  /// As the next iteration calls them.
  Copies later(Copies copies) const;
};
using BuffersInTurn = std::unordered_map<ir::BufferRef, Turns>;

/// Buffers, and which copies of each.
class Touched {
 public:
  void add(const ir::BufferRef& buffer, Copies copies) { copies_[buffer] |= copies; }
  void add(const Touched& other) {
    for (const auto& [buffer, copies] : other.copies_)
      add(buffer, copies);
  }
  bool contains(const ir::BufferRef& buffer) const { return copies_.contains(buffer); }
  bool meets(const Touched& other) const {
    return std::ranges::any_of(copies_, [&](const auto& entry) {
      const auto at = other.copies_.find(entry.first);
      return at != other.copies_.end() && (at->second & entry.second) != 0;
    });
  }
  bool includes(const Touched& other) const {
    return std::ranges::all_of(other.copies_, [&](const auto& entry) {
      const auto at = copies_.find(entry.first);
      return at != copies_.end() && (entry.second & ~at->second) == 0;
    });
  }
  std::vector<ir::BufferRef> buffers() const {
    std::vector<ir::BufferRef> result;
    for (const auto& [buffer, copies] : copies_)
      result.push_back(buffer);
    return result;
  }
  /// With what `change` makes of the copies of these buffers.
  template <typename Change>
  void change(const BuffersInTurn& buffers, Change&& change) {
    for (auto& [buffer, copies] : copies_) {
      const auto turns = buffers.find(buffer);
      if (turns != buffers.end()) copies = change(turns->second, copies);
    }
  }

 private:
  std::unordered_map<ir::BufferRef, Copies> copies_;
};

/// What a statement does to contested buffers.
struct Effects {
  Touched read;
  Touched written;
  Touched rewritten;  // of the written ones those that other stores may hit

  void add(const Effects& other) {
    read.add(other.read);
    written.add(other.written);
    rewritten.add(other.rewritten);
  }
  bool conflicts(const Effects& later) const {
    return later.read.meets(written) || later.written.meets(read) || later.written.meets(rewritten);
  }
  bool includes(const Effects& other) const {
    return read.includes(other.read) && written.includes(other.written) &&
           rewritten.includes(other.rewritten);
  }
  template <typename Change>
  void change(const BuffersInTurn& buffers, Change&& change) {
    for (Touched* const touched : {&read, &written, &rewritten})
      touched->change(buffers, change);
  }
  /// Buffers of which a thread may need here what another one does here.
  std::vector<ir::BufferRef> inner_conflicts() const {
    std::vector<ir::BufferRef> result = rewritten.buffers();
    for (ir::BufferRef& buffer : written.buffers()) {
      if (read.contains(buffer)) result.push_back(std::move(buffer));
    }
    return result;
  }
};

/// The buffers of which each iteration of a loop touches copies, the next one those behind them: an
/// index of all accesses is floormod(k + c, n), of one n.
BuffersInTurn copies_in_turn(const ir::For& loop);

/// What `stmt` does to contested buffers, or to those of `only`; of those that take turns around
/// it, to which copies. What is awaited is written there: of those in turn what an iteration reads.
Effects effects_of(const ir::Stmt& stmt, const SharedBuffers& shared, const BuffersInTurn& in_turn,
                   const BuffersInTurn* only = nullptr);

}  // namespace kiln::passes

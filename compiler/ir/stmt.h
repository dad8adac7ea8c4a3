#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/language/tables/hints.h"

namespace kiln::ir {

class StmtNode : public Node {
 public:
  explicit StmtNode(NodeKind kind) : Node(kind) {}
};
using Stmt = Handle<StmtNode>;

/// Statements in order. Empty: nothing. A block in a block is flattened by make().
struct Block : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Block;
  static Stmt make(std::vector<Stmt> body);
  auto fields() const { return std::tie(body); }
  const std::vector<Stmt> body;

 private:
  explicit Block(std::vector<Stmt> b) : StmtNode(kKind), body(std::move(b)) {}
};

/// How the iterations of a loop run. Vectorized and Unrolled are marks that vectorize_loops and
/// unroll_loops take away; Parallel and ThreadIndex stay until code is generated, and so does Host:
/// one iteration after the other, each of launches of its own.
enum class LoopKind : uint8_t { Serial, Parallel, Vectorized, Unrolled, ThreadIndex, Host };

/// Threads of a GPU that run together, side by side along threadIdx.x.
constexpr int kWarp = 32;

/// Which hardware index a ThreadIndex loop is. Loops of one thread axis in one launch are the same
/// index.
enum class ThreadAxis : uint8_t {
  None,
  BlockX,
  BlockY,
  BlockZ,
  ThreadX,
  ThreadY,
  ThreadZ,
  VThread,
};
/// "blockIdx.x"; "" for None.
std::string_view name_of(ThreadAxis axis);
std::optional<ThreadAxis> find_thread_axis(std::string_view name);

/// Runs `body` for var = 0 .. extent - 1.
///
/// A loop always starts at zero; an offset belongs in the index expressions, so no pass has to ask.
/// The kind says how the iterations run; the meaning of `body` does not depend on it.
struct For : StmtNode {
  static constexpr NodeKind kKind = NodeKind::For;
  static constexpr std::string_view kWord = "for";
  static Stmt make(VarRef var, Expr extent, LoopKind loop_kind, ThreadAxis thread, Stmt body);
  static Stmt make(VarRef var, Expr extent, LoopKind loop_kind, Stmt body) {
    return make(std::move(var), std::move(extent), loop_kind, ThreadAxis::None, std::move(body));
  }
  auto fields() const { return std::tie(var, extent, loop_kind, thread, body); }
  const VarRef var;
  const Expr extent;
  const LoopKind loop_kind;
  const ThreadAxis thread;
  const Stmt body;

 private:
  For(VarRef v, Expr e, LoopKind k, ThreadAxis t, Stmt b)
      : StmtNode(kKind),
        var(std::move(v)),
        extent(std::move(e)),
        loop_kind(k),
        thread(t),
        body(std::move(b)) {}
};

/// `likely`: a guard of a split, true in all full tiles; partition_loops may peel it off.
struct If : StmtNode {
  static constexpr NodeKind kKind = NodeKind::If;
  static constexpr std::string_view kWord = "if";
  static Stmt make(Expr condition, Stmt then_body, Stmt else_body = nullptr, bool likely = false);
  auto fields() const { return std::tie(condition, then_body, else_body, likely); }
  const Expr condition;
  const Stmt then_body;
  const Stmt else_body;  // may be null
  const bool likely;

 private:
  If(Expr c, Stmt t, Stmt e, bool l)
      : StmtNode(kKind),
        condition(std::move(c)),
        then_body(std::move(t)),
        else_body(std::move(e)),
        likely(l) {}
};

/// buffer[indices] = value. Indices and predicate as in Load.
struct Store : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Store;
  static Stmt make(BufferRef buffer, std::vector<Expr> indices, Expr value,
                   Expr predicate = nullptr);
  auto fields() const { return std::tie(buffer, indices, value, predicate); }
  const BufferRef buffer;
  const std::vector<Expr> indices;
  const Expr value;
  const Expr predicate;

 private:
  Store(BufferRef b, std::vector<Expr> i, Expr v, Expr p)
      : StmtNode(kKind),
        buffer(std::move(b)),
        indices(std::move(i)),
        value(std::move(v)),
        predicate(std::move(p)) {}
};

/// buffer[indices] = op(buffer[indices], value), in one piece: threads that do it to one element at
/// once have the effect of one after the other, in some order.
struct Atomic : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Atomic;
  static constexpr std::string_view kWord = "atomic";
  static Stmt make(Operator op, BufferRef buffer, std::vector<Expr> indices, Expr value);
  auto fields() const { return std::tie(op, buffer, indices, value); }
  const Operator op;  // of two operands, whose order does not matter
  const BufferRef buffer;
  const std::vector<Expr> indices;
  const Expr value;

 private:
  Atomic(Operator o, BufferRef b, std::vector<Expr> i, Expr v)
      : StmtNode(kKind), op(o), buffer(std::move(b)), indices(std::move(i)), value(std::move(v)) {}
};

/// Memory for `buffer` while `body` runs; its contents are undefined before the first store.
struct Allocate : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Allocate;
  static constexpr std::string_view kWord = "allocate";
  static Stmt make(BufferRef buffer, Stmt body);
  auto fields() const { return std::tie(buffer, body); }
  const BufferRef buffer;
  const Stmt body;

 private:
  Allocate(BufferRef b, Stmt s) : StmtNode(kKind), buffer(std::move(b)), body(std::move(s)) {}
};

/// Stops the call unless 0 <= index < extent. `check` is a position in Kernel::checks.
struct Check : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Check;
  static constexpr std::string_view kWord = "check";
  static Stmt make(Expr index, Expr extent, int check);
  auto fields() const { return std::tie(index, extent, check); }
  const Expr index;
  const Expr extent;
  const int check;

 private:
  Check(Expr i, Expr e, int c)
      : StmtNode(kKind), index(std::move(i)), extent(std::move(e)), check(c) {}
};

/// All threads of a block wait for each other; only inside ThreadIndex loops.
struct Barrier : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Barrier;
  static constexpr std::string_view kWord = "barrier";
  static Stmt make();
  auto fields() const { return std::tuple<>(); }

 private:
  Barrier() : StmtNode(kKind) {}
};

/// buffer[indices], of one thread, = what `value` is in another thread along threadIdx.x: the one
/// `distance` behind, or `lane` of them, where that is given. Threads are taken together `width` at
/// a time; where there is none so far behind, it is the thread's own, and lanes are counted modulo
/// the width. They must all come to it: only inside ThreadIndex loops, as a Barrier.
struct Shuffle : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Shuffle;
  static constexpr std::string_view kWord = "shuffle";
  static Stmt make(int distance, Expr lane, int width, BufferRef buffer, std::vector<Expr> indices,
                   Expr value);
  auto fields() const { return std::tie(distance, lane, width, buffer, indices, value); }
  const int distance;
  const Expr lane;  // may be null; each thread's own
  const int width;  // a power of two, at most kWarp
  const BufferRef buffer;
  const std::vector<Expr> indices;
  const Expr value;

 private:
  Shuffle(int d, Expr l, int w, BufferRef b, std::vector<Expr> i, Expr v)
      : StmtNode(kKind),
        distance(d),
        lane(std::move(l)),
        width(w),
        buffer(std::move(b)),
        indices(std::move(i)),
        value(std::move(v)) {}
};

/// What the body stores to shared memory arrives later: no earlier than it is computed, and no
/// later than where this thread awaits it; meanwhile nobody knows what the elements are. All of it
/// is one group, even where it is nothing. Threads that read what another one has stored so wait
/// for each other after that one has awaited it.
struct Background : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Background;
  static constexpr std::string_view kWord = "background";
  static Stmt make(Stmt body);
  auto fields() const { return std::tie(body); }
  const Stmt body;

 private:
  explicit Background(Stmt b) : StmtNode(kKind), body(std::move(b)) {}
};

/// The thread waits until all groups that it has stored in the background have arrived, but for the
/// last `groups`.
struct Await : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Await;
  static constexpr std::string_view kWord = "await";
  static Stmt make(int groups);
  auto fields() const { return std::tie(groups); }
  const int groups;

 private:
  explicit Await(int g) : StmtNode(kKind), groups(g) {}
};

/// Groups of one thread that are under way at once, at most.
constexpr int kMostGroups = 7;

/// The body is meant to be this intrinsic: the pass tensorize makes it so, and leaves none of
/// these.
struct Tensorize : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Tensorize;
  static constexpr std::string_view kWord = "tensorize";
  static Stmt make(language::TensorIntrinsic intrinsic, Stmt body);
  auto fields() const { return std::tie(intrinsic, body); }
  const language::TensorIntrinsic intrinsic;
  const Stmt body;

 private:
  Tensorize(language::TensorIntrinsic i, Stmt b)
      : StmtNode(kKind), intrinsic(i), body(std::move(b)) {}
};

/// The body adds products to a tile of sums, in loops that say what each element is: a core with a
/// matrix unit has instructions for it (analysis/tile_product.h). The meaning is that of the body,
/// which passes behind multiply_in_tiles leave as it is.
struct MultiplyTiles : StmtNode {
  static constexpr NodeKind kKind = NodeKind::MultiplyTiles;
  static constexpr std::string_view kWord = "multiply_tiles";
  static Stmt make(Stmt body);
  auto fields() const { return std::tie(body); }
  const Stmt body;

 private:
  explicit MultiplyTiles(Stmt b) : StmtNode(kKind), body(std::move(b)) {}
};

/// The cache that something is fetched into: the nearest, or the one behind it alone.
enum class FetchInto : uint8_t { L1, L2 };

/// Fetches the element into the cache. It must be one of the buffer; its value does not matter.
struct Prefetch : StmtNode {
  static constexpr NodeKind kKind = NodeKind::Prefetch;
  static constexpr std::string_view kWord = "prefetch";
  static constexpr std::string_view kWordOfL2 = "prefetch_l2";
  static Stmt make(BufferRef buffer, std::vector<Expr> indices, FetchInto into = FetchInto::L1);
  auto fields() const { return std::tie(buffer, indices, into); }
  const BufferRef buffer;
  const std::vector<Expr> indices;
  const FetchInto into;

 private:
  Prefetch(BufferRef b, std::vector<Expr> i, FetchInto f)
      : StmtNode(kKind), buffer(std::move(b)), indices(std::move(i)), into(f) {}
};

}  // namespace kiln::ir

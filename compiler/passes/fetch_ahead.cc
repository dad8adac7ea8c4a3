// Fetches what innermost loops read side by side a page before they do, from inputs that are
// larger than the near caches: a CPU fetches ahead by itself, but stops at the end of a page.
//
//   for i in 0..131072 { C[..] = A[ramp(i*16, 1, 16)] }
//     ->
//   for i in 0..131072 { prefetch A[min(i*16 + 1024, 2097136)]  C[..] = A[ramp(i*16, 1, 16)] }
//
// Where the loop ends sooner and the one around it goes on elsewhere, it fetches what that one
// reads next. Of several loops in one, that which computes most fetches. Of an output that a loop
// reads too, as a scan does, it fetches where it is going to store. Stands where loops are in
// vectors, unrolled, and parameters have one index.
//
// Software prefetching for streams that the hardware loses: it follows a row of memory line by
// line, but stops at the end of a page, since the next page may lie anywhere (and costs a TLB
// miss). So innermost loops fetch one page ahead, of inputs past the reach of the near caches,
// where few streams run at once. After Mowry, Lam and Gupta, "Design and Evaluation of a Compiler
// Algorithm for Prefetching" (1992), with the distance a page instead of a latency.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

// What is smaller stays in a cache that is near enough. The CPU itself fetches ahead too, but not
// past the end of a page.
constexpr int64_t kLargeBytes = int64_t{2} << 20;
constexpr int64_t kAheadBytes = 4096;
constexpr int64_t kLineBytes = 64;
// Neighbouring iterations read neighbouring lines.
constexpr int64_t kStepBytes = 1024;
// Of more streams, each stops at the end of a page while the others go on.
constexpr size_t kMostStreams = 2;
// Of more rows, one line each would fill the ways of the nearest cache.
constexpr size_t kMostRows = 8;

/// Elements side by side that a loop goes through.
struct Row {
  BufferRef buffer;
  Expr first;
  int64_t lanes;
};

std::optional<Row> row_of(const BufferRef& buffer, const Expr& index) {
  const auto* ramp = as<Ramp>(index);
  // Where data says where a row begins, the next one lies somewhere else.
  if (ramp == nullptr || as_const_int(ramp->stride) != 1 || reads_memory(ramp->base))
    return std::nullopt;
  return Row{buffer, ramp->base, index->type.lanes};
}

/// What a loop loads from neighbouring elements and computes.
class Body : public Visitor {
 public:
  explicit Body(const For& loop) {
    (*this)(loop.body);
    std::erase_if(stores, [&](const Row& store) {
      return std::ranges::none_of(rows, [&](const Row& row) { return row.buffer == store.buffer; });
    });
  }

  std::vector<Row> rows;          // it loads
  std::vector<Row> stores;        // to buffers that it loads too
  std::vector<const For*> loops;  // right inside of it
  int64_t work = 0;               // of one iteration, in registers

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    if (depth_ == 0) loops.push_back(&loop);
    ++depth_;
    Visitor::visit(loop);
    --depth_;
  }
  void visit(const Load& load) override {
    if (const auto row = row_of(load.buffer, load.indices[0])) rows.push_back(*row);
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    if (const auto row = row_of(store.buffer, store.indices[0])) stores.push_back(*row);
    Visitor::visit(store);
  }
  void visit(const Binary& node) override {
    work += node.type.lanes;
    Visitor::visit(node);
  }
  void visit(const Call& node) override {
    constexpr int64_t kFunction = 16;
    const bool chooses = node.op == Operator::Select || node.op == Operator::IfThenElse;
    work += node.type.lanes * (chooses ? 1 : kFunction);
    Visitor::visit(node);
  }
  int depth_ = 0;
};

class FetchAhead : public Mutator {
 public:
  explicit FetchAhead(const Kernel& kernel) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const BufferRef& buffer = kernel.parameters[i];
      const bool is_large = constant_bytes(*buffer).value_or(0) >= kLargeBytes;
      if (is_large) (kernel.is_output[i] ? large_outputs_ : large_).insert(buffer);
    }
  }

  bool has_large_tensors() const { return !large_.empty() || !large_outputs_.empty(); }

 private:
  using Mutator::visit;

  struct Place {
    Expr index;
    bool goes_on;  // the stream gets there without leaving anything out
  };

  /// A core fetches what its tiles are loaded from.
  Stmt visit(const MultiplyTiles& node) override { return &node; }

  Stmt visit(const For& loop) override {
    const Body inside(loop);
    const auto around = fetchers_;
    if (!inside.loops.empty()) choose_fetchers(inside.loops);
    loops_.push_back(&loop);
    Stmt body = inside.loops.empty() ? with_fetches(loop.body, inside) : (*this)(loop.body);
    loops_.pop_back();
    fetchers_ = around;
    if (body == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, std::move(body));
  }

  /// Of loops over the same input, one after the other, the first has to wait for it; but where
  /// what is fetched is the next row, the one that computes most has the time to wait.
  void choose_fetchers(const std::vector<const For*>& loops) {
    fetchers_.clear();
    std::unordered_map<BufferRef, int64_t> most;
    for (const For* loop : loops) {
      const Body inside(*loop);
      if (!inside.loops.empty()) continue;
      int64_t work = 0;
      if (__builtin_mul_overflow(inside.work, as_const_int(loop->extent).value_or(1), &work)) {
        work = std::numeric_limits<int64_t>::max();
      }
      for (const Row& row : inside.rows) {
        int64_t& known = most.try_emplace(row.buffer, -1).first->second;
        if (known >= work) continue;
        known = is_long(*loop, row) ? std::numeric_limits<int64_t>::max() : work;
        fetchers_[row.buffer] = loop;
      }
    }
  }

  /// Whether a page ahead is still in the row that the loop goes through.
  static bool is_long(const For& loop, const Row& row) {
    const int64_t size = size_of(row.buffer->type);
    const int64_t step = analysis::stride_of(row.first, loop.var).value_or(0);
    const int64_t extent =
        std::min<int64_t>(as_const_int(loop.extent).value_or(INT32_MAX), INT32_MAX);
    return std::abs(step) <= kStepBytes / size && extent * step * size >= 2 * kAheadBytes;
  }

  bool fetches(const BufferRef& buffer) const {
    const auto chosen = fetchers_.find(buffer);
    return large_.contains(buffer) &&
           (chosen == fetchers_.end() || chosen->second == loops_.back());
  }

  Stmt with_fetches(const Stmt& body, const Body& inside) {
    std::vector<Row> streams;
    const auto add = [&](const Row& row) {
      if (!is_beside(streams, row)) streams.push_back(row);
    };
    for (const Row& row : inside.rows) {
      if (fetches(row.buffer)) add(row);
    }
    // A step that is computed from the one before is stored where the CPU does not expect it.
    for (const Row& row : inside.stores) {
      if (large_outputs_.contains(row.buffer)) add(row);
    }
    std::vector<Stmt> all;
    for (const Row& stream : streams) {
      const std::optional<Place> place = place_ahead(stream);
      if (!place || streams.size() > (place->goes_on ? kMostStreams : kMostRows)) continue;
      const Buffer& buffer = *stream.buffer;
      const int64_t elements = *constant_bytes(buffer) / size_of(buffer.type);
      const Expr last = index(std::max<int64_t>(elements - stream.lanes, 0));
      const Expr from = Binary::make(Operator::Min, place->index, last);
      for (int64_t lane = 0; lane < stream.lanes; lane += kLineBytes / size_of(buffer.type))
        all.push_back(Prefetch::make(stream.buffer, {from + lane}));
    }
    if (all.empty()) return body;
    all.push_back(body);
    return Block::make(std::move(all));
  }

  /// Whether another one already has the same lines, or nearly.
  static bool is_beside(const std::vector<Row>& streams, const Row& row) {
    return std::ranges::any_of(streams, [&](const Row& stream) {
      if (!(stream.buffer == row.buffer)) return false;
      const auto apart = as_const_int(analysis::simplify(row.first - stream.first));
      return apart && std::abs(*apart) < std::min(row.lanes, stream.lanes);
    });
  }

  /// What the loops get to so much later; nothing where they do not go along the elements.
  std::optional<Place> place_ahead(const Row& stream) const {
    const int64_t size = size_of(stream.buffer->type);
    const int64_t ahead = kAheadBytes / size;
    int64_t run = 0;  // elements side by side that the loops up to here go through
    for (auto at = loops_.rbegin(); at != loops_.rend() && run < 2 * ahead; ++at) {
      const For& loop = **at;
      const std::optional<int64_t> step = analysis::stride_of(stream.first, loop.var);
      const std::optional<int64_t> extent = as_const_int(loop.extent);
      const bool is_innermost = at == loops_.rbegin();
      if (is_innermost && (!step || *step <= 0 || *step > kStepBytes / size)) return std::nullopt;
      if (!step) break;
      if (*step == 0) return std::nullopt;  // the same elements again
      const bool goes_on = is_innermost || (*step >= run && *step <= run + kLineBytes / size);
      if (!goes_on) {
        const int64_t turns = std::max<int64_t>(ahead / std::max<int64_t>(run, 1), 1);
        const Expr later = substitute(stream.first, {{loop.var, Expr(loop.var) + turns}});
        return Place{*step < 0 ? ir::max(later, index(0)) : later, false};
      }
      if (!extent || __builtin_mul_overflow(*step, *extent, &run)) break;
    }
    return Place{stream.first + ahead, true};
  }

  std::unordered_set<BufferRef> large_;  // inputs
  std::unordered_set<BufferRef> large_outputs_;
  std::vector<const For*> loops_;  // around, outermost first
  /// Which of the loops right inside of the one around fetches an input.
  std::unordered_map<BufferRef, const For*> fetchers_;
};

}  // namespace

Kernel fetch_ahead(Kernel kernel, const PassContext&) {
  FetchAhead fetch(kernel);
  if (fetch.has_large_tensors()) kernel.body = fetch(kernel.body);
  return kernel;
}

}  // namespace kiln::passes

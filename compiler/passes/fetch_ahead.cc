// Fetches what innermost loops read side by side a page before they do, from inputs that are
// larger than the near caches: a CPU fetches ahead by itself, but stops at the end of a page.
//
//   for i in 0..131072 { C[..] = A[ramp(i*16, 1, 16)] }
//     ->
//   for i in 0..131072 { prefetch A[min(i*16 + 1024, 2097136)]  C[..] = A[ramp(i*16, 1, 16)] }
//
// Where the loop ends sooner and the one around it goes on elsewhere, it fetches what that one
// reads next. Of several loops in one, that which computes most fetches the next row. Of an output
// that a loop reads too, as a scan does, it fetches where it is going to store. Stands where loops
// are in vectors, unrolled, parameters have one index, and it is known what is stored past the
// caches.
//
// Software prefetching for streams that the hardware loses: it follows a row of memory line by
// line, but stops at the end of a page, since the next page may lie anywhere (and costs a TLB
// miss). So innermost loops fetch one page ahead, of inputs past the reach of the near caches,
// where few streams run at once. After Mowry, Lam and Gupta, "Design and Evaluation of a Compiler
// Algorithm for Prefetching" (1992), with the distance a page instead of a latency.
//
// A loop that waits for its own stream fetches into L2, from which the CPU goes on by itself: what
// is fetched into L1 holds a place there until it has come. A fourth of a page ahead is enough,
// and a page is too much where vectors are halves of lines or many loads are written out. us on one
// core of a Zen 4, tensors of 64 MiB, in turns: not fetched, into L1 a page ahead, into L2:
//
//   sums of rows                                      2137, 1938, 1780
//   x - c * (sum of the row)                          3854, 4202, 3424
//   x / sqrt(sum of squares of the row), 2048         2129, 2072, 1637
//   sums over the middle axis of 64 x 512 x 512       1867, 2370, 1717
//   X * 2 + c, stored past the caches                 3126, 2617, 3944
//   the same of 8 MiB, which come from L3             210, 229, 216
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/nontemporal.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/read_streams.h"

namespace kiln::passes {
namespace {

using namespace ir;

// What is smaller stays in a cache that is near enough. The CPU itself fetches ahead too, but not
// past the end of a page.
constexpr int64_t kLargeBytes = int64_t{2} << 20;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kAheadInL2Bytes = 1024;
// Of the nearest cache, which then has this row and the next one.
constexpr int64_t kMostRowBytes = 32 * 1024;
constexpr int64_t kLineBytes = 64;
// Neighbouring iterations read neighbouring lines.
constexpr int64_t kStepBytes = 1024;
// Of more streams, each stops at the end of a page while the others go on.
constexpr size_t kMostStreams = 2;
// Of more rows, one line each would fill the ways of the nearest cache.
constexpr size_t kMostRows = 8;

class FetchAhead : public Mutator {
 public:
  explicit FetchAhead(const Kernel& kernel)
      : stays_near_(analysis::stay_near(kernel)), nontemporal_(kernel.nontemporal) {
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
    const ReadStreams inside(loop);
    const auto around = fetchers_;
    if (!inside.loops.empty()) choose_fetchers(inside.loops);
    loops_.push_back(&loop);
    Stmt body = inside.loops.empty() ? with_fetches(loop.body, inside) : (*this)(loop.body);
    loops_.pop_back();
    fetchers_ = around;
    if (body == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, std::move(body));
  }

  /// One of the loops that read an input.
  struct Reader {
    const For* loop;
    int64_t work;       // of the loop
    bool computes;      // a function of each element
    int64_t row_bytes;  // that it goes through; 0: not side by side
  };
  struct Fetcher {
    const For* loop = nullptr;
    int64_t ahead = kPageBytes;
    bool is_later = false;  // than the loop that waits for what is fetched
  };

  static Reader reader_of(const For& loop, const ReadStreams& inside, const Row& row) {
    const int64_t extent = as_const_int(loop.extent).value_or(1);
    Reader reader{&loop, 0, inside.work >= ReadStreams::kFunction * row.lanes, 0};
    if (__builtin_mul_overflow(inside.work, extent, &reader.work))
      reader.work = std::numeric_limits<int64_t>::max();
    const int64_t size = size_of(row.buffer->type);
    const int64_t step = analysis::stride_of(row.first, loop.var).value_or(0);
    if (std::abs(step) <= kStepBytes / size)
      reader.row_bytes = std::min<int64_t>(as_const_int(loop.extent).value_or(INT32_MAX),
                                           std::numeric_limits<int32_t>::max()) *
                         step * size;
    return reader;
  }

  /// Of loops over the same input, one after the other, the first has to wait for it; but where
  /// what is fetched is the next row, the one that computes most has the time to wait: of rows of
  /// no more than a page, and of longer ones that L1 holds if it computes functions.
  static Fetcher choose_fetcher(const std::vector<Reader>& readers) {
    const auto most = std::ranges::max_element(readers, {}, &Reader::work);
    const auto is_long = [](const Reader& reader) { return reader.row_bytes >= 2 * kPageBytes; };
    const bool hides_row = most->computes && most->row_bytes < kMostRowBytes;
    const auto first = std::ranges::find_if(readers, is_long);
    const auto chosen = first == readers.end() || (hides_row && is_long(*most)) ? most : first;
    const bool is_later = chosen->loop != readers.front().loop;
    return {.loop = chosen->loop,
            .ahead = is_later ? std::max(kPageBytes, chosen->row_bytes) : kPageBytes,
            .is_later = is_later};
  }

  void choose_fetchers(const std::vector<const For*>& loops) {
    fetchers_.clear();
    std::unordered_map<BufferRef, std::vector<Reader>> readers;
    for (const For* loop : loops) {
      const ReadStreams inside(*loop);
      if (!inside.loops.empty()) continue;
      for (const Row& row : inside.rows)
        readers[row.buffer].push_back(reader_of(*loop, inside, row));
    }
    for (const auto& [buffer, all] : readers)
      fetchers_[buffer] = choose_fetcher(all);
  }

  /// Nothing where another loop fetches it.
  std::optional<Fetcher> fetcher_of(const BufferRef& buffer) const {
    const auto chosen = fetchers_.find(buffer);
    if (chosen == fetchers_.end()) return Fetcher{.loop = loops_.back()};
    if (chosen->second.loop != loops_.back()) return std::nullopt;
    return chosen->second;
  }

  /// What is stored past the caches holds up what comes from memory; and what another loop waits
  /// for, or what begins anew elsewhere after a while, has no stream that could be followed.
  FetchInto into(const ReadStreams& inside, const Row& stream, const Fetcher& fetcher) const {
    const bool bypasses = std::ranges::any_of(inside.stores, [&](const Row& store) {
      return std::ranges::find(nontemporal_, store.buffer) != nontemporal_.end();
    });
    return bypasses || fetcher.is_later || !is_endless(stream) ? FetchInto::L1 : FetchInto::L2;
  }

  /// Whether the loop around goes on where the innermost one ends.
  bool is_endless(const Row& stream) const {
    if (loops_.size() < 2) return true;
    const For& inner = *loops_.back();
    const For& outer = **std::prev(loops_.end(), 2);
    const std::optional<int64_t> step = analysis::stride_of(stream.first, inner.var);
    const std::optional<int64_t> next = analysis::stride_of(stream.first, outer.var);
    const std::optional<int64_t> extent = as_const_int(inner.extent);
    int64_t run = 0;
    if (!step || !next || !extent || __builtin_mul_overflow(*step, *extent, &run)) return false;
    return *next >= run && *next <= run + kLineBytes / size_of(stream.buffer->type);
  }

  Stmt with_fetches(const Stmt& body, const ReadStreams& inside) {
    std::vector<Row> streams;
    const auto add = [&](const Row& row) {
      if (!is_beside(streams, row)) streams.push_back(row);
    };
    for (const Row& row : inside.rows) {
      if (large_.contains(row.buffer) && fetcher_of(row.buffer)) add(row);
    }
    // A step that is computed from the one before is stored where the CPU does not expect it.
    for (const Row& row : inside.stored_and_loaded()) {
      if (large_outputs_.contains(row.buffer)) add(row);
    }
    std::vector<Stmt> all;
    for (const Row& stream : streams) {
      const Fetcher fetcher = fetcher_of(stream.buffer).value_or(Fetcher{});
      std::optional<Place> place = place_ahead(stream, fetcher.ahead);
      if (!place || streams.size() > (place->goes_on ? kMostStreams : kMostRows)) continue;
      const FetchInto cache = into(inside, stream, fetcher);
      if (cache == FetchInto::L2 && stays_near_) continue;
      if (cache == FetchInto::L2) place = place_ahead(stream, kAheadInL2Bytes);
      const Buffer& buffer = *stream.buffer;
      const int64_t elements = *constant_bytes(buffer) / size_of(buffer.type);
      const Expr last = index(std::max<int64_t>(elements - stream.lanes, 0));
      const Expr from = Binary::make(Operator::Min, place->index, last);
      for (int64_t lane = 0; lane < stream.lanes; lane += kLineBytes / size_of(buffer.type))
        all.push_back(Prefetch::make(stream.buffer, {from + lane}, cache));
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
  std::optional<Place> place_ahead(const Row& stream, int64_t ahead_bytes) const {
    const int64_t size = size_of(stream.buffer->type);
    const int64_t ahead = ahead_bytes / size;
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
  std::unordered_map<BufferRef, Fetcher> fetchers_;
  const bool stays_near_;
  const std::vector<BufferRef> nontemporal_;
};

}  // namespace

Kernel fetch_ahead(Kernel kernel, const PassContext&) {
  FetchAhead fetch(kernel);
  if (fetch.has_large_tensors()) kernel.body = fetch(kernel.body);
  return kernel;
}

}  // namespace kiln::passes

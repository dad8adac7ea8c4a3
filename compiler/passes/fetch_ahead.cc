#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/linear.h"
#include "compiler/passes/passes.h"

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

std::optional<int64_t> constant_elements(const Buffer& buffer) {
  int64_t elements = 1;
  for (const Expr& extent : buffer.shape) {
    const std::optional<int64_t> value = as_const_int(extent);
    if (!value || __builtin_mul_overflow(elements, *value, &elements)) return std::nullopt;
  }
  return elements;
}

/// The vectors that are loaded from neighbouring elements, without those of a loop further in.
class Rows : public Visitor {
 public:
  std::vector<const Load*> loads;
  bool has_loops = false;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    has_loops = true;
    Visitor::visit(loop);
  }
  void visit(const Load& load) override {
    const auto* ramp = as<Ramp>(load.indices[0]);
    if (ramp != nullptr && as_const_int(ramp->stride) == 1) loads.push_back(&load);
    Visitor::visit(load);
  }
};

class FetchAhead : public Mutator {
 public:
  explicit FetchAhead(const Kernel& kernel) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const BufferRef& buffer = kernel.parameters[i];
      const int64_t elements = constant_elements(*buffer).value_or(0);
      const bool is_large = elements >= kLargeBytes / size_of(buffer->type);
      if (!kernel.is_output[i] && is_large) large_.insert(buffer);
    }
  }

 private:
  using Mutator::visit;

  struct Stream {
    const Load* load;
    Expr index;  // of its first element
  };
  struct Place {
    Expr index;
    bool goes_on;  // the stream gets there without leaving anything out
  };

  Stmt visit(const For& loop) override {
    const auto around = fetched_;
    fetched_.clear();
    loops_.push_back(&loop);
    Rows rows;
    rows(loop.body);
    Stmt body = rows.has_loops ? (*this)(loop.body) : loop.body;
    fetched_ = around;
    if (!rows.has_loops) body = with_fetches(body, rows.loads);
    loops_.pop_back();
    if (body == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, std::move(body));
  }

  Stmt with_fetches(const Stmt& body, const std::vector<const Load*>& loads) {
    std::vector<Stream> streams;
    for (const Load* load : loads) {
      if (!large_.contains(load->buffer) || fetched_.contains(load->buffer)) continue;
      const Expr first = as<Ramp>(load->indices[0])->base;
      if (!is_beside(streams, *load, first)) streams.push_back({load, first});
    }
    std::vector<Stmt> all;
    std::vector<BufferRef> buffers;
    for (const Stream& stream : streams) {
      const std::optional<Place> place = place_ahead(stream);
      if (!place || streams.size() > (place->goes_on ? kMostStreams : kMostRows)) continue;
      const Buffer& buffer = *stream.load->buffer;
      const int64_t lanes = stream.load->type.lanes;
      const Expr last = index(std::max<int64_t>(*constant_elements(buffer) - lanes, 0));
      const Expr from = Binary::make(Operator::Min, place->index, last);
      for (int64_t lane = 0; lane < lanes; lane += kLineBytes / size_of(buffer.type))
        all.push_back(Prefetch::make(stream.load->buffer, {from + lane}));
      buffers.push_back(stream.load->buffer);
    }
    if (all.empty()) return body;
    // What comes later in the same iteration of the loops around reads it from the cache.
    fetched_.insert(buffers.begin(), buffers.end());
    all.push_back(body);
    return Block::make(std::move(all));
  }

  /// Whether another load already has the same lines, or nearly.
  static bool is_beside(const std::vector<Stream>& streams, const Load& load, const Expr& first) {
    return std::ranges::any_of(streams, [&](const Stream& stream) {
      if (!(stream.load->buffer == load.buffer)) return false;
      const auto apart = as_const_int(analysis::simplify(first - stream.index));
      return apart && std::abs(*apart) < std::min(load.type.lanes, stream.load->type.lanes);
    });
  }

  /// What the loops get to so much later; nothing where they do not go along the elements.
  std::optional<Place> place_ahead(const Stream& stream) const {
    const int64_t size = size_of(stream.load->buffer->type);
    const int64_t ahead = kAheadBytes / size;
    int64_t run = 0;  // elements side by side that the loops up to here go through
    for (auto at = loops_.rbegin(); at != loops_.rend() && run < 2 * ahead; ++at) {
      const For& loop = **at;
      const std::optional<int64_t> step = stride_of(stream.index, loop.var);
      const std::optional<int64_t> extent = as_const_int(loop.extent);
      const bool is_innermost = at == loops_.rbegin();
      if (is_innermost && (!step || *step <= 0 || *step * size > kStepBytes)) return std::nullopt;
      if (!step) break;
      if (*step == 0) return std::nullopt;  // the same elements again
      const bool goes_on = is_innermost || (*step >= run && *step <= run + kLineBytes);
      if (!goes_on) {
        const int64_t turns = std::max<int64_t>(ahead / std::max<int64_t>(run, 1), 1);
        return Place{substitute(stream.index, {{loop.var, Expr(loop.var) + turns}}), false};
      }
      if (!extent || __builtin_mul_overflow(*step, *extent, &run)) break;
    }
    return Place{stream.index + ahead, true};
  }

  std::unordered_set<BufferRef> large_;
  std::vector<const For*> loops_;          // around, outermost first
  std::unordered_set<BufferRef> fetched_;  // by another loop in the one around
};

}  // namespace

Kernel fetch_ahead(Kernel kernel, const PassContext&) {
  kernel.body = FetchAhead(kernel)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes

// Copies in the background, and which of their sources are worth a pointer: those of a loop that
// has several groups of copies, as unroll_turns leaves it.
//
//   for k { group: s[0] = A[k*384]  s[1] = A[k*384 + 4096]   group: s[2] = A[k*384 + 64] .. }
//     ->
//   p = &A[0], q = &A[4096]   for k { copies from p, q;  copies from p + 64, q + 64;  p += 384 .. }
//
// Rows are further apart than an instruction can say, so that each copy would add its distance to
// the place of the first one, in 64 bits (strength reduction; Allen, Cocke and Kennedy, 1981).
#include "compiler/codegen/cuda_copies.h"

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr int64_t kMostWrittenOut = 32;  // iterations
constexpr size_t kMostPointers = 16;     // of two registers each

struct Source {
  BufferRef buffer;
  Expr place;
};

/// A variable in the place of each cast, about which the arithmetic of indices knows nothing: of
/// two places what both have cancels out then.
class NameCasts : public Mutator {
 private:
  using Mutator::visit;
  Expr visit(const Cast& cast) override {
    for (const auto& [known, var] : names_)
      if (equal_trees(known, &cast)) return var;
    return names_.emplace_back(&cast, Var::make("cast")).second;
  }
  std::vector<std::pair<Expr, VarRef>> names_;
};

/// The sources of a group in order; false where there is something else in it.
bool add_sources(const Stmt& stmt, Substitution& around, std::vector<Source>& sources) {
  if (const Block* block = as<Block>(stmt)) {
    for (const Stmt& inner : block->body)
      if (!add_sources(inner, around, sources)) return false;
    return true;
  }
  if (const For* loop = as<For>(stmt); loop && is_written_out(*loop)) {
    for (int64_t i = 0; i < *as_const_int(loop->extent); ++i) {
      around[loop->var] = index(i);
      if (!add_sources(loop->body, around, sources)) return false;
    }
    around.erase(loop->var);
    return true;
  }
  // Who copies nothing has a pointer all the same.
  if (const If* node = as<If>(stmt); node && !node->else_body)
    return add_sources(node->then_body, around, sources);
  const Store* store = as<Store>(stmt);
  if (store == nullptr || late_bytes(*store) == 0) return false;
  const Load& load = *as<Load>(store->value);
  const Expr place = substitute(first_element(load.indices[0]), around);
  sources.push_back({load.buffer, analysis::simplify(place)});
  return true;
}

/// The groups that stand right in a body; false where others do.
bool add_groups(const Stmt& stmt, std::vector<std::vector<Source>>& groups) {
  if (const Block* block = as<Block>(stmt)) {
    for (const Stmt& inner : block->body)
      if (!add_groups(inner, groups)) return false;
    return true;
  }
  if (const Background* group = as<Background>(stmt)) {
    Substitution around;
    return add_sources(group->body, around, groups.emplace_back());
  }
  return !has_background(stmt);
}

}  // namespace

Expr for_all(const Expr& predicate) {
  const Broadcast* same = as<Broadcast>(predicate);
  return same != nullptr ? same->value : nullptr;
}

int64_t late_bytes(const Store& store) {
  const Load* load = as<Load>(store.value);
  const bool is_copy = load != nullptr && (!load->predicate || for_all(load->predicate)) &&
                       !store.predicate && store.buffer->scope == Scope::Shared &&
                       load->buffer->scope == Scope::Global &&
                       store.buffer->type == load->buffer->type;
  const int64_t bytes = is_copy ? size_of(store.buffer->type) * store.value->type.lanes : 0;
  return bytes == 4 || bytes == 8 || bytes == 16 ? bytes : 0;
}

bool is_written_out(const For& loop) {
  const Store* store = as<Store>(loop.body);
  return as_const_int(loop.extent).value_or(kMostWrittenOut + 1) <= kMostWrittenOut &&
         store != nullptr && late_bytes(*store) > 0;
}

Expr first_element(const Expr& index) {
  const Ramp* ramp = as<Ramp>(index);
  return ramp != nullptr ? ramp->base : index;
}

std::optional<MovingPlaces> moving_places(const For& loop) {
  std::vector<std::vector<Source>> groups;
  if (!add_groups(loop.body, groups) || groups.size() < 2) return std::nullopt;
  const size_t count = groups[0].size();
  if (count == 0 || count > kMostPointers) return std::nullopt;
  MovingPlaces result;
  NameCasts named;
  for (size_t i = 0; i < count; ++i) {
    const auto& [buffer, first] = groups[0][i];
    MovingPlaces::Place place{
        buffer, analysis::simplify(substitute(first, {{loop.var, index(0)}})), {}};
    const int64_t size = size_of(buffer->type);
    for (const std::vector<Source>& group : groups) {
      if (group.size() != count || group[i].buffer != buffer) return std::nullopt;
      const auto behind = as_const_int(analysis::simplify(named(group[i].place - first)));
      if (!behind) return std::nullopt;
      place.bytes.push_back(*behind * size);
    }
    const std::optional<int64_t> stride = analysis::stride_of(first, loop.var);
    if (!stride) return std::nullopt;
    place.bytes.push_back(*stride * size);
    result.places.push_back(std::move(place));
  }
  return result;
}

}  // namespace kiln::codegen

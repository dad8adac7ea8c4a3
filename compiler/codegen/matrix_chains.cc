// Says which products of 8-bit floats tensor cores add up by themselves before float32 has their
// sums: the fewer additions, the more of the instructions are products.
#include "compiler/codegen/matrix_chains.h"

#include <optional>
#include <utility>

#include "compiler/analysis/matrix_product.h"
#include "compiler/codegen/cuda_uses.h"
#include "compiler/ir/build.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

using namespace ir;

/// What can be a link: its steps, and how many a chain has at most.
struct Products {
  BufferRef sums;
  int64_t steps = 0;
  int64_t most = 0;
};

class FindChains : public Visitor {
 public:
  explicit FindChains(const std::vector<const For*>& axes) : axes_(axes) {}
  std::vector<ChainLink> found;

 private:
  using Visitor::visit;

  void visit(const Block& block) override {
    for (const Stmt& stmt : block.body) {
      const For* loop = as<For>(stmt);
      if (const auto products = loop != nullptr ? products_of(*loop) : std::nullopt) {
        add(*loop, *products);
        continue;
      }
      // What needs the sums finds them in the whole.
      if (last_ && used_buffers(stmt).contains(found[*last_].sums.get())) end();
      const auto around = std::exchange(last_, std::nullopt);
      (*this)(stmt);
      last_ = around;
    }
    end();
  }

  void visit(const For& loop) override {
    const auto products = products_of(loop);
    if (!products) return Visitor::visit(loop);
    add(loop, *products);
    end();
  }

  std::optional<Products> products_of(const For& loop) const {
    if (const auto product = chained_product(loop)) return product;
    const For* inner = as<For>(loop.body);
    const auto product = inner != nullptr ? chained_product(*inner) : std::nullopt;
    const std::optional<int64_t> times = as_const_int(loop.extent);
    if (!product || !times || *times * product->steps > product->most) return std::nullopt;
    return Products{product->sums, *times * product->steps, product->most};
  }

  std::optional<Products> chained_product(const For& loop) const {
    const auto product = analysis::find_matrix_product(loop, axes_);
    if (!product) return std::nullopt;
    const auto unit = matrix_unit(product->rows.buffer->type, product->columns.buffer->type);
    if (!unit || unit->chained_steps == 0) return std::nullopt;
    return Products{product->sums, unit->steps, unit->chained_steps};
  }

  void add(const For& loop, const Products& products) {
    if (last_ && (found[*last_].sums != products.sums || steps_ + products.steps > products.most))
      end();
    const bool is_first = !last_.has_value();
    if (is_first) {
      ++chains_;
      steps_ = 0;
    }
    last_ = found.size();
    steps_ += products.steps;
    found.push_back({&loop, products.sums, chains_ - 1, is_first, false});
  }

  void end() {
    if (last_) found[*last_].is_last = true;
    last_.reset();
  }

  const std::vector<const For*>& axes_;
  std::optional<size_t> last_;  // link of a chain that has not ended
  int64_t steps_ = 0;           // of it
  size_t chains_ = 0;
};

}  // namespace

std::vector<ChainLink> matrix_chains(const Stmt& body, const std::vector<const For*>& axes) {
  FindChains walk(axes);
  walk(body);
  return std::move(walk.found);
}

bool has_matrix_chains(const Kernel& kernel) {
  bool has_some = false;
  map_launches(kernel.body, [&](const Stmt& launched, const HostLoops&) {
    const LaunchNest nest = launch_nest(launched);
    has_some = has_some || !matrix_chains(nest.body, nest.axes).empty();
    return launched;
  });
  return has_some;
}

}  // namespace kiln::codegen

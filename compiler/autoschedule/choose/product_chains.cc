// Products whose rows are another product's factor, as the scores of an attention: both, and what
// stands between them, in one loop over blocks of rows, if a roofline says that it pays.
//
//   for h, i_block parallel { S[32, m] = Q K^T; P = softmax(S); O[32, d] = P V }
//
// Apart, all scores are written and read again; in blocks each block reads all columns of K and V.
// Blocks of rows, not of columns too, keep the order of every sum: the passes over a row are those
// of the definition (compare Dao et al., FlashAttention, 2022, which rescales partial sums).
#include "compiler/autoschedule/choose/product_chains.h"

#include <algorithm>
#include <optional>

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

/// Half of a cache has what passes between two products; the rest is of what else they read. Of
/// L2, which a core goes through in blocks, five eighths: a part of the columns is there too.
constexpr int64_t kPartOfCache = 2;
constexpr int64_t kBlockEighths = 5;
constexpr int64_t kBlockRows[] = {64, 32, 16, 8};
/// Fewer rows share too little of the columns that they read.
constexpr int64_t kFewestRows = 16;
/// Blocks for each of a few cores.
constexpr int64_t kFewestBlocks = kBlockTasks * kFewCores;
constexpr int64_t kMostBytes = int64_t{1} << 48;

struct Chain {
  RowStages rows;
  std::vector<StageId> products;
  int64_t block = 0;  // rows
  double saved = 0;   // cycles
};

int64_t times(int64_t a, int64_t b) { return a != 0 && b > kMostBytes / a ? kMostBytes : a * b; }

/// Cycles to write so many bytes and read them, where that many stay meanwhile: in L2 up to `near`.
double passing(int64_t bytes, int64_t staying, int64_t near, const Machine& machine) {
  const double rate = staying <= near                              ? machine.passed_in_l2
                      : staying <= machine.l3_bytes / kPartOfCache ? machine.passed_in_l3
                                                                   : machine.passed_in_memory;
  return 2 * static_cast<double>(bytes) / rate;
}

class Chains {
 public:
  explicit Chains(const Chooser& chooser) : chooser_(chooser), graph_(chooser.graph) {}

  /// Last readers first: they have the loop that the others go into.
  std::vector<Chain> find() const {
    std::vector<Chain> found;
    std::vector<bool> taken(graph_.stages.size(), false);
    for (auto id = graph_.order.rbegin(); id != graph_.order.rend(); ++id) {
      if (taken[*id] || !may_be_last(*id)) continue;
      const std::optional<Chain> chain = chain_at(*id);
      if (!chain || chain->saved <= 0) continue;
      taken[*id] = true;
      for (const StageId member : chain->rows.members)
        taken[member] = true;
      found.push_back(*chain);
    }
    return found;
  }

  void write(const Chain& chain, StepWriter& steps) const {
    const auto& [members, last, dimensions] = chain.rows;
    for (const StageId member : members)
      schedule(chain, member, steps);
    std::vector<AxisId> loops = graph_[last].data;
    loops.resize(dimensions);
    if (is_product_of(chain, last)) {
      loops.back() = write_product(chain, last, steps, chain.block);
    } else {
      schedule_row(chooser_, steps, last, dimensions);
      loops.back() = steps.split(last, loops.back(), chain.block).first;
    }
    for (const StageId member : members)
      steps.compute_at(member, last, loops.back());
    if (!is_parallel(chain)) return;
    for (const AxisId loop : loops)
      steps.parallel(last, loop);
  }

 private:
  bool may_be_last(StageId id) const {
    return is_free(graph_, id) && !has_dependent_extents(graph_, id) &&
           !has_indirect_reads(graph_[id]) && graph_[id].data.size() > 1;
  }

  /// The most dimensions first, so that as little as can be passes at a time.
  std::optional<Chain> chain_at(StageId last) const {
    for (size_t dimensions = graph_[last].data.size() - 1; dimensions > 0; --dimensions) {
      Chain chain{.rows = rows_of(graph_, last, dimensions, {}, Products::Belong), .products = {}};
      if (chain.rows.members.empty() || !take_products(chain)) continue;
      if (choose_block(chain)) return chain;
    }
    return std::nullopt;
  }

  /// Notes the products; false where one cannot run in blocks of rows, or none reads another.
  bool take_products(Chain& chain) const {
    bool is_chain = false;
    std::vector<StageId> stages = chain.rows.members;
    stages.push_back(chain.rows.last);
    for (const StageId id : stages) {
      const std::optional<Contraction> found = find_contraction(graph_, id);
      if (!found) continue;
      // Products that an instruction adds in groups have other tiles.
      if (tiling(id).group.products != 1) return false;
      const std::vector<AxisId>& data = graph_[id].data;
      const StageId panel = found->column_factor->stage;
      if (data.size() != chain.rows.dimensions + 1 || found->row != data[data.size() - 2] ||
          is_in(chain, panel) || graph_[panel].role.cell_of >= 0) {
        return false;
      }
      chain.products.push_back(id);
      is_chain = is_chain || (chain.products.size() > 1 && is_in(chain, found->row_factor->stage));
    }
    return is_chain;
  }

  static bool is_in(const Chain& chain, StageId id) {
    return std::ranges::find(chain.rows.members, id) != chain.rows.members.end();
  }
  static bool is_product_of(const Chain& chain, StageId id) {
    return std::ranges::find(chain.products, id) != chain.products.end();
  }

  /// Bytes of the part of a stage after the dimensions of rows; nothing where a size is not known.
  std::optional<int64_t> bytes_of_row(StageId id, size_t dimensions) const {
    int64_t bytes = 0;
    for (const DType type : graph_[id].types)
      bytes += size_of(type);
    for (size_t d = dimensions; d < graph_[id].data.size(); ++d) {
      const std::optional<int64_t> extent = constant_extent(graph_, graph_[id].data[d]);
      if (!extent || *extent <= 0) return std::nullopt;
      bytes = times(bytes, *extent);
    }
    return bytes;
  }

  /// The rows of a block and what is saved; false where sizes are not known or rows are too few.
  bool choose_block(Chain& chain) const {
    const auto& [members, last, dimensions] = chain.rows;
    int64_t batch = 1;
    for (size_t d = 0; d + 1 < dimensions; ++d) {
      const std::optional<int64_t> extent = constant_extent(graph_, graph_[last].data[d]);
      if (!extent || *extent <= 0) return false;
      batch = times(batch, *extent);
    }
    const std::optional<int64_t> rows = constant_extent(graph_, graph_[last].data[dimensions - 1]);
    if (!rows || *rows < kFewestRows) return false;
    int64_t held = 0;    // bytes of a row of all that is in the block
    int64_t passed = 0;  // of a row of what passes to and from products
    for (const StageId id : members) {
      const std::optional<int64_t> bytes = bytes_of_row(id, dimensions);
      if (!bytes) return false;
      held += *bytes;
      if (is_product_of(chain, id) || is_row_factor(chain, id)) passed += *bytes;
    }
    int64_t columns = 0;  // bytes of the column factors of one of the batch
    for (const StageId id : chain.products) {
      const Numbers numbers = numbers_of(chooser_, tiling(id), false);
      if (numbers.panels == 0) return false;
      columns += times(numbers.panels, size_of(graph_[id].types[0]));
    }
    const Machine& machine = chooser_.machine;
    const int64_t all = times(times(batch, *rows), passed);
    const double apart = passing(all, all, machine.l2_bytes / kPartOfCache, machine);
    for (const int64_t block : kBlockRows) {
      const int64_t blocks = times(batch, (*rows + block - 1) / block);
      if (blocks < kFewestBlocks) continue;
      const double read =
          static_cast<double>(times(blocks, columns)) / machine.passed_beside_products;
      const double saved =
          apart - read -
          passing(all, times(block, held), machine.l2_bytes * kBlockEighths / 8, machine);
      if (chain.block != 0 && saved <= chain.saved) continue;
      chain.block = block;
      chain.saved = saved;
    }
    return chain.block != 0;
  }

  /// Whether a product of the chain reads the stage.
  bool is_row_factor(const Chain& chain, StageId id) const {
    return std::ranges::any_of(chain.products, [&](StageId product) {
      return find_contraction(graph_, product)->row_factor->stage == id;
    });
  }

  Tiling tiling(StageId id) const {
    return tiling_of(chooser_, id, find_contraction(graph_, id).value());
  }

  bool is_parallel(const Chain& chain) const { return is_worth_sharing(chooser_, chain.products); }

  void schedule(const Chain& chain, StageId member, StepWriter& steps) const {
    if (is_product_of(chain, member)) {
      write_product(chain, member, steps, 0);
    } else {
      schedule_row(chooser_, steps, member, chain.rows.dimensions);
    }
  }

  /// Tiles for the rows of a block. `own_block`: of the stage that has the loop over blocks.
  AxisId write_product(const Chain& chain, StageId id, StepWriter& steps, int64_t own_block) const {
    const Tiling tiles = tiling(id);
    ContractionSize size = numbers_of(chooser_, tiles, false).size;
    size.rows = std::min(size.rows, chain.block);
    const TileShape tile = best_panel_tile(size);
    const std::vector<Parameter> names = {{"rows", {}},
                                          {"lanes", {}},
                                          {"columns first", {}},
                                          {"rows of a block", {}},
                                          {"parallel", {}}};
    const std::vector<int64_t> values = {tile.rows, tile.lanes, is_near(size, tile.lanes) ? 1 : 0,
                                         own_block, is_parallel(chain) ? 1 : 0};
    const AxisId loop = write_rows_of_block(graph_, tiles, steps, Values(names, values));
    inline_panel(tiles, steps);
    return loop;
  }

  /// What is computed for the columns alone, as a transposed view, is computed as they are copied.
  void inline_panel(const Tiling& tiles, StepWriter& steps) const {
    const StageId id = tiles.panel.stage;
    const Stage& stage = graph_[id];
    if (stage.kind != Stage::Kind::Compute || !is_free(graph_, id) || graph_.has_parameter(id) ||
        stage.is_reduction() || stage.bodies.size() != 1 ||
        !reductions_inside(graph_, id).empty() || schedule::readers_of(graph_, id).size() != 1) {
      return;
    }
    steps.compute_inline(id);
  }

  const Chooser& chooser_;
  const StageGraph& graph_;
};

/// Whether there are two products at all, as far as the definition shows it: most kernels have not,
/// and need no graph for this.
bool may_have_chains(const language::Definition& definition) {
  int sums = 0;
  for (const language::Stage& stage : definition.stages) {
    const auto* compute = std::get_if<language::Compute>(&stage);
    const language::Reduction* reduction =
        compute == nullptr ? nullptr : definition.whole_reduction(*compute);
    if (reduction != nullptr && reduction->combiner == language::Combiner::Sum) ++sums;
  }
  return sums > 1;
}

size_t count_products(const StageGraph& graph) {
  return static_cast<size_t>(std::ranges::count_if(graph.order, [&](StageId id) {
    return graph[id].is_live && graph[id].kind == Stage::Kind::Compute && is_product(graph, id);
  }));
}

}  // namespace

language::Schedule with_product_chains(const language::Kernel& kernel, language::Schedule given,
                                       const Target& target, const CompileOptions& options) {
  if (!may_have_chains(kernel.definition)) return given;
  const StageGraph graph = graph_of(kernel, {given, {}});
  const Chooser chooser{graph, options, machine_of(target.arch), target.arch};
  const Chains chains(chooser);
  const std::vector<Chain> found = chains.find();
  if (found.empty()) return given;
  StepWriter steps(std::move(given), graph);
  for (const Chain& chain : found)
    chains.write(chain, steps);
  return std::move(steps).schedule();
}

double saved_by_product_chain(const language::Kernel& kernel, const Target& target,
                              const CompileOptions& options) {
  if (!options.automatic || !target.traits().has_vectors || !may_have_chains(kernel.definition))
    return 0;
  const StageGraph graph = graph_of(kernel, {});
  const Chooser chooser{graph, options, machine_of(target.arch), target.arch};
  const std::vector<Chain> found = Chains(chooser).find();
  if (found.size() != 1 || found[0].products.size() != count_products(graph)) return 0;
  constexpr double kClock = 4e9;  // about that of the machines of the table
  return found[0].saved / kClock;
}

}  // namespace kiln::autoschedule

// Predicts a program on tiles: what its blocks multiply, compute element by element and move, over
// what the multiprocessors do in a cycle. The largest of these is the time.
//
//   32 heads of 4096 queries and keys of 128 numbers, on an H100: 1024 blocks, in 8 turns
//     ->  tensor cores 0.52 M cycles, functions 0.26 M, issue 0.20 M
//
// A loop may end at another part of its axis for each part of a block axis, as that over the keys
// that a query sees: blocks are looked at one by one along that axis. No GPU has confirmed a
// figure.
#include "compiler/predict/predict_tiles.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "compiler/predict/launch_work.h"

namespace kiln::predict {
namespace {

using language::Operator;
using tile::Instruction;
using tile::ValueId;

// Instructions for each multiply-add of float32, as tileiras (13.5) makes them: attentions have 1.3
// to 1.65 in their main loops.
constexpr double kInstructionsEach = 1.45;
// Elements that instructions compute which start in a cycle.
constexpr double kLanes = autoschedule::kSchedulers * kWarp;
// Of exponentials, roots, divisions and the like (CUDA C++ programming guide, throughput of native
// arithmetic instructions).
constexpr double kFunctionLanes = 16;
constexpr int64_t kWarpgroupRows = 64;  // that a product of whole warpgroups has at least
// Instructions for each byte that threads turn on its way to a product, which waits for it: of the
// main loops of products of int8 and 8-bit floats for sm_90 (docs/gpu.md), which have 2 to 17. And
// for each element of a copy in another order, of 8 or 16 bits; where the call brings how long its
// rows are, with its place in 64 bits.
constexpr double kTurnInstructions = 5.5;
constexpr double kCopyInstructions = 7;
constexpr double kOpenCopyInstructions = 46;
constexpr double kWaitsOfBlock = 2 * autoschedule::kLoadCycles;
constexpr int64_t kMostLookedAt = 64;  // parts of an axis

/// What a block does.
struct TileWork {
  double products = 0;   // of 16-bit factors; one of fewer bits counts as a part
  double functions = 0;  // elements
  double elements = 0;
  double multiply_adds = 0;  // of float32, which no tensor core does
  double turned = 0;         // bytes, by threads
  double copied = 0;         // instructions for elements that are loaded and stored as they are

  void add(const TileWork& other, double times) {
    products += other.products * times;
    functions += other.functions * times;
    elements += other.elements * times;
    multiply_adds += other.multiply_adds * times;
    turned += other.turned * times;
    copied += other.copied * times;
  }
};

class Tiles {
 public:
  Tiles(const tile::Program& program, std::span<const int64_t> sizes,
        const autoschedule::GpuMachine& machine)
      : program_(program), sizes_(sizes), machine_(machine), places_(program.axes.size()) {}

  /// The average of all parts of the block axis whose places it computes with, if there is one.
  TileWork average() {
    const auto uses_places = [](const Instruction& each) {
      return std::holds_alternative<tile::Places>(each.what);
    };
    const auto use = std::ranges::find_if(program_.body, uses_places);
    if (use == program_.body.end()) return work_of(program_.body);
    const tile::AxisId axis = std::get<tile::Places>(use->what).axis;
    const int64_t parts = program_.axes[axis].parts(sizes_);
    const int64_t looked_at = std::min(parts, kMostLookedAt);
    TileWork sum;
    for (int64_t i = 0; i < looked_at; ++i) {
      places_[axis] = (2 * i + 1) * parts / (2 * looked_at);
      sum.add(work_of(program_.body), 1.0 / static_cast<double>(looked_at));
    }
    return sum;
  }

 private:
  TileWork work_of(const std::vector<Instruction>& body) {
    TileWork work;
    for (const Instruction& each : body)
      std::visit([&](const auto& what) { add(what, each, work); }, each.what);
    return work;
  }

  const tile::TileType& result(const Instruction& each) const {
    return program_.values[each.results[0]];
  }
  const tile::TileType& operand(const Instruction& each, size_t i) const {
    return program_.values[each.operands[i]];
  }
  static void add_elements(const tile::TileType& type, TileWork& work) {
    work.elements += static_cast<double>(type.count());
  }

  void add(const tile::Mma& mma, const Instruction& each, TileWork& work) const {
    const tile::TileType& a = operand(each, 0);
    const auto products = static_cast<double>(a.count() * operand(each, 1).shape[1]);
    if (a.element == DType::Float32 && !mma.in_tf32) {
      work.multiply_adds += products;
      return;
    }
    if (size_of(a.element) == 1 && machine_.bytes_along_sums) {
      if (!goes_along(each.operands[0], 0)) work.turned += static_cast<double>(a.count());
      if (!goes_along(each.operands[1], 1))
        work.turned += static_cast<double>(operand(each, 1).count());
    }
    const double share = static_cast<double>(size_of(a.element)) / 2;
    // Fewer rows are multiplied by single warps.
    const double speed = a.shape[0] < kWarpgroupRows ? machine_.warp_share : 1;
    work.products += products * share / speed;
  }
  void add(const tile::Apply& apply, const Instruction& each, TileWork& work) {
    add_elements(result(each), work);
    if (is_function(apply.function)) work.functions += static_cast<double>(result(each).count());
    keep_place(apply.function, each);
  }
  void add(const tile::Reduce&, const Instruction& each, TileWork& work) const {
    add_elements(operand(each, 0), work);
  }
  void add(const tile::Cast&, const Instruction& each, TileWork& work) const {
    add_elements(result(each), work);
  }
  void add(const tile::For& loop, const Instruction&, TileWork& work) {
    double parts = 1;
    for (const tile::AxisId axis : loop.axes)
      parts *= static_cast<double>(program_.axes[axis].parts(sizes_));
    const auto part_at = [&](ValueId value) {
      const int64_t step = program_.axes[loop.axes[0]].step;
      const int64_t part = (scalars_.at(value) + step - 1) / step;
      return static_cast<double>(part);
    };
    if (loop.until) parts = std::clamp(part_at(*loop.until), 0.0, parts);
    if (loop.from) parts = std::max(parts - std::max(part_at(*loop.from), 0.0), 0.0);
    work.add(work_of(loop.body), parts);
  }
  void add(const tile::Constant& constant, const Instruction& each, TileWork&) {
    if (is_place(result(each))) scalars_[each.results[0]] = static_cast<int64_t>(constant.number);
  }
  void add(const tile::SizeOf& size, const Instruction& each, TileWork&) {
    scalars_[each.results[0]] = sizes_[size.size];
  }
  void add(const tile::Places& places, const Instruction& each, TileWork&) {
    if (is_place(result(each)))
      scalars_[each.results[0]] = places_[places.axis] * program_.axes[places.axis].step;
  }
  // Copies go on beside the rest, and what only turns a tile is no instruction.
  void add(const tile::Load& load, const Instruction& each, TileWork&) {
    loaded_[each.results[0]] = load.view;
  }
  void add(const tile::Window&, const Instruction&, TileWork&) {}
  void add(const tile::Store& store, const Instruction& each, TileWork& work) const {
    if (!loaded_.contains(each.operands[0])) return;
    const tile::Parameter& stored = program_.parameters[program_.views[store.view].parameter];
    work.copied += static_cast<double>(operand(each, 0).count()) *
                   (stored.has_open_rows() ? kOpenCopyInstructions : kCopyInstructions);
  }
  void add(const tile::Reshape&, const Instruction& each, TileWork&) {
    const auto from = loaded_.find(each.operands[0]);
    if (from != loaded_.end()) loaded_[each.results[0]] = from->second;
  }
  void add(const tile::Broadcast&, const Instruction&, TileWork&) {}

  /// Whether the elements of a factor lie side by side along the sum, which is this many dimensions
  /// before the last of its tile.
  bool goes_along(ValueId factor, size_t before_last) const {
    const auto loaded = loaded_.find(factor);
    if (loaded == loaded_.end()) return true;  // windows do
    const std::vector<uint32_t>& order = program_.views[loaded->second].order;
    return order[order.size() - 1 - before_last] == order.size() - 1;
  }

  static bool is_function(Operator function) {
    return function == Operator::Div || (function >= Operator::Exp && function <= Operator::Tanh);
  }

  /// Where loops begin and end is computed with such.
  static bool is_place(const tile::TileType& type) {
    return type.element == DType::Int32 && type.count() == 1;
  }
  void keep_place(Operator function, const Instruction& each) {
    if (!is_place(result(each))) return;
    const int64_t a = scalars_[each.operands[0]];
    const int64_t b = each.operands.size() > 1 ? scalars_[each.operands[1]] : 0;
    int64_t& place = scalars_[each.results[0]];
    switch (function) {
      case Operator::Add: place = a + b; break;
      case Operator::Sub: place = a - b; break;
      case Operator::Mul: place = a * b; break;
      case Operator::Min: place = std::min(a, b); break;
      case Operator::Max: place = std::max(a, b); break;
      case Operator::Negative: place = -a; break;
      default: place = 0;
    }
  }

  const tile::Program& program_;
  const std::span<const int64_t> sizes_;
  const autoschedule::GpuMachine& machine_;
  std::vector<int64_t> places_;  // by axis
  std::map<ValueId, int64_t> scalars_;
  std::map<ValueId, tile::ViewId> loaded_;  // tiles as they lie in memory
};

/// Those of which windows are read.
std::set<uint32_t> windowed(const std::vector<Instruction>& body) {
  std::set<uint32_t> parameters;
  for (const Instruction& each : body) {
    if (const auto* loop = std::get_if<tile::For>(&each.what))
      parameters.merge(windowed(loop->body));
    if (const auto* window = std::get_if<tile::Window>(&each.what))
      parameters.insert(window->parameter);
  }
  return parameters;
}

/// Of all tensors that are read or stored.
double bytes_of(const tile::Program& program, std::span<const int64_t> sizes) {
  std::set<uint32_t> moved = windowed(program.body);
  for (const tile::View& view : program.views)
    moved.insert(view.parameter);
  double bytes = 0;
  for (const uint32_t number : moved) {
    const tile::Parameter& parameter = program.parameters[number];
    auto of_one = static_cast<double>(size_of(parameter.type));
    for (const tile::Extent& extent : parameter.shape)
      of_one *= static_cast<double>(extent.at(sizes));
    bytes += of_one;
  }
  return bytes;
}

Prediction predict_program(const tile::Program& program, std::span<const int64_t> sizes,
                           const autoschedule::GpuMachine& machine,
                           const std::optional<TileFacts>& facts) {
  const TileWork work = Tiles(program, sizes, machine).average();
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  double blocks = 1;
  for (const tile::Axis& axis : program.blocks())
    blocks *= static_cast<double>(axis.parts(sizes));
  const double turns = std::ceil(blocks / multiprocessors);  // of the busiest multiprocessor
  const double bytes = bytes_of(program, sizes);
  const bool stays = bytes <= static_cast<double>(machine.l2_size);
  // Of the first loads of a block, and of its last stores; blocks at once wait together.
  const double waits =
      facts ? std::ceil(turns / static_cast<double>(facts->blocks_at_once)) * kWaitsOfBlock : 0;
  return prediction_of(
      {{"tensor cores", turns * work.products / static_cast<double>(machine.matrix_lanes)},
       {"multiply-adds", turns * work.multiply_adds / static_cast<double>(machine.float_lanes)},
       {"functions", turns * work.functions / kFunctionLanes},
       {"issue",
        turns * ((work.elements + work.multiply_adds * kInstructionsEach + work.copied) / kLanes +
                 work.products / 1024 * (facts ? facts->issue : 0))},
       {"memory", stays ? 0 : bytes / (machine.memory_bytes * multiprocessors)},
       {"bytes turned", turns * work.turned * kTurnInstructions / kLanes, true},
       {"waits", waits, true},
       {"launches", autoschedule::kLaunchSeconds * machine.gigahertz * 1e9, true}},
      machine.gigahertz);
}

}  // namespace

Prediction predict_tiles(const tile::Program& program, std::span<const int64_t> sizes,
                         const autoschedule::GpuMachine& machine) {
  return predict_program(program, sizes, machine, std::nullopt);
}

Prediction predict_tiles(const tile::Sequence& sequence, std::span<const int64_t> sizes,
                         const autoschedule::GpuMachine& machine,
                         const std::optional<TileFacts>& facts) {
  Prediction whole = predict_program(sequence.last(), sizes, machine, facts);
  double before = 0;  // each of which waits for what it loads before it stores it
  bool are_copies = true;
  for (const tile::Sequence::Step& step :
       std::span(sequence.steps).first(sequence.steps.size() - 1)) {
    if (tile::block_count(step).evaluate(sizes) == 0) continue;
    are_copies = are_copies && step.program.body.size() == 2;  // a load and a store
    before += predict_tiles(step.program, sizes, machine).cycles + autoschedule::kLoadCycles;
  }
  if (before == 0) return whole;
  std::vector<Term> terms = std::move(whole.terms);
  terms.push_back({are_copies ? "copies of factors" : "factors computed before", before, true});
  return prediction_of(std::move(terms), machine.gigahertz);
}

}  // namespace kiln::predict

// Compares the two predictions of a kernel at sizes that a call may bring, all of one length, and
// says of which sizes on tiles take less time. What is large has enough blocks; what is copied is
// used by enough of them.
#include "compiler/tile_gain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/predict/predict_gpu.h"
#include "compiler/predict/predict_tiles.h"

namespace kiln {
namespace {

using Op = SizeExpr::Op;

/// The parts of axes at which a loop reads a parameter.
std::set<tile::AxisId> axes_of(const tile::Program& program, uint32_t parameter) {
  std::set<tile::AxisId> axes;
  for (const tile::Instruction& each : program.body) {
    const auto* loop = std::get_if<tile::For>(&each.what);
    if (loop == nullptr) continue;
    for (const tile::Instruction& inner : loop->body) {
      const auto* load = std::get_if<tile::Load>(&inner.what);
      if (load != nullptr && program.views[load->view].parameter == parameter)
        axes.insert(load->at.begin(), load->at.end());
      const auto* window = std::get_if<tile::Window>(&inner.what);
      if (window != nullptr && window->parameter == parameter)
        axes.insert(window->rows.begin(), window->rows.end());
    }
  }
  return axes;
}

/// A product of extents.
class Count {
 public:
  void add(const tile::Extent& extent) {
    if (extent.size < 0) {
      known_ *= extent.constant;
    } else {
      const SizeExpr size = SizeExpr::scalar(extent.size);
      open_ = open_ ? SizeExpr::binary(Op::Mul, *open_, size) : size;
    }
  }
  bool is_open() const { return open_.has_value(); }
  double at(std::span<const int64_t> sizes) const {
    return static_cast<double>(known_) *
           (open_ ? static_cast<double>(open_->evaluate(sizes)) : 1.0);
  }
  /// 1 where it is so many or more.
  SizeExpr at_least(double least) const {
    const double open = std::ceil(least / static_cast<double>(std::max<int64_t>(known_, 1)));
    if (!open_) return SizeExpr::constant(open <= 1 ? 1 : 0);
    if (open <= 1) return SizeExpr::constant(1);
    const SizeExpr below = SizeExpr::constant(static_cast<int64_t>(open) - 1);
    return SizeExpr::binary(Op::Less, below, *open_);
  }

 private:
  int64_t known_ = 1;
  std::optional<SizeExpr> open_;
};

class Comparison {
 public:
  Comparison(const tile::Sequence& sequence, const ir::Kernel& loops, std::string_view arch)
      : sequence_(sequence),
        loops_(loops),
        arch_(ir::gpu_arch(std::string(arch))),
        machine_(autoschedule::gpu_machine(arch)) {}

  SizeExpr run() const {
    if (sequence_.last().sizes.empty()) return SizeExpr::constant(pays({}) ? 1 : 0);
    const std::vector<std::vector<int64_t>> probes = all_probes();
    size_t first = probes.size();  // that pays, and so do all larger ones
    while (first > 0 && pays(probes[first - 1]))
      --first;
    if (first == probes.size()) return SizeExpr::constant(0);
    SizeExpr condition = copies_pay(probes.back());
    if (first > 0)
      condition = SizeExpr::both(results().at_least(results().at(probes[first])), condition);
    return condition;
  }

 private:
  /// Sizes of a call, all of one length, which is odd where that is what is copied.
  std::vector<std::vector<int64_t>> all_probes() const {
    const bool may_be_spared =
        std::ranges::any_of(sequence_.steps, &tile::Sequence::Step::is_spared);
    std::vector<std::vector<int64_t>> probes;
    for (int64_t length = 64; length <= 8192; length *= 2) {
      for (const int64_t each : {length, length / 2 * 3})
        probes.emplace_back(sequence_.last().sizes.size(), may_be_spared ? each - 1 : each);
    }
    return probes;
  }
  predict::Prediction on_tiles(std::span<const int64_t> sizes) const {
    return predict::predict_tiles(sequence_, sizes, machine_);
  }
  double in_cuda_c(std::span<const int64_t> sizes) const {
    return predict::predict_gpu(loops_, sizes, machine_, arch_).seconds();
  }
  bool pays(std::span<const int64_t> sizes) const {
    return on_tiles(sizes).seconds() <= in_cuda_c(sizes);
  }

  /// Elements of the output.
  Count results() const {
    Count count;
    for (const tile::Parameter& tensor : std::span(sequence_.tensors).first(sequence_.given))
      if (tensor.is_output)
        for (const tile::Extent& extent : tensor.shape)
          count.add(extent);
    return count;
  }

  /// Where each element that is copied is used so often that what its products gain is more than
  /// what its copy takes; both as they are for these sizes.
  SizeExpr copies_pay(std::span<const int64_t> sizes) const {
    const tile::Program& product = sequence_.last();
    const std::span copies = std::span(sequence_.steps).first(sequence_.steps.size() - 1);
    if (copies.empty()) return SizeExpr::constant(1);
    Count products;
    for (const tile::Axis& axis : product.axes)
      products.add(axis.extent);
    double copied = 0;  // elements
    double seconds = 0;
    for (const tile::Sequence::Step& step : copies) {
      Count elements;
      for (const tile::Axis& axis : step.program.axes)
        elements.add(axis.extent);
      copied += elements.at(sizes);
      seconds += predict::predict_tiles(step.program, sizes, machine_).seconds();
    }
    const double gained = in_cuda_c(sizes) - (on_tiles(sizes).seconds() - seconds);
    const double least_uses =
        static_cast<double>(copies.size()) * seconds / copied / (gained / products.at(sizes));
    SizeExpr condition = SizeExpr::constant(1);
    for (const tile::Sequence::Step& step : copies) {
      SizeExpr pays = uses_of(step).at_least(least_uses);
      if (step.is_spared && pays != SizeExpr::constant(1))
        pays = SizeExpr::binary(Op::Or, tile::has_even_rows(step.program.parameters[1]), pays);
      condition = SizeExpr::both(condition, pays);
    }
    return condition;
  }

  /// How many products read an element of what a step leaves.
  Count uses_of(const tile::Sequence::Step& step) const {
    const auto left = std::ranges::find_if(step.program.parameters, &tile::Parameter::is_output) -
                      step.program.parameters.begin();
    const std::vector<uint32_t>& tensors = sequence_.steps.back().tensors;
    const auto at =
        std::ranges::find(tensors, step.tensors[static_cast<size_t>(left)]) - tensors.begin();
    const std::set<tile::AxisId> axes = axes_of(sequence_.last(), static_cast<uint32_t>(at));
    Count uses;
    for (tile::AxisId axis = 0; axis < sequence_.last().block_axes; ++axis)
      if (!axes.contains(axis)) uses.add(sequence_.last().axes[axis].extent);
    return uses;
  }

  const tile::Sequence& sequence_;
  const ir::Kernel& loops_;
  const ir::GpuArch arch_;
  const autoschedule::GpuMachine machine_;
};

}  // namespace

SizeExpr where_tiles_pay(const tile::Sequence& sequence, const ir::Kernel& loops,
                         std::string_view arch) {
  return Comparison(sequence, loops, arch).run();
}

}  // namespace kiln

// Runs a program on tiles. An element is kept as a double, which holds those of all types exactly;
// all arithmetic but that of mma is the operator table's own.
#include "compiler/tile/interpret.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using language::HostTensor;
using language::Scalar;

using Elements = std::vector<double>;

double number_of(const Scalar& scalar) {
  return is_float(scalar.type) ? scalar.floating : static_cast<double>(scalar.integer);
}
Scalar scalar_of(DType type, double number) {
  return is_float(type) ? Scalar::of_float(type, number)
                        : Scalar::of_int(type, static_cast<int64_t>(number));
}
/// To the nearest float32, or modulo 2^32.
double rounded_sum(DType type, double sum) {
  if (is_float(type)) return static_cast<double>(static_cast<float>(sum));
  return static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(sum)));
}

/// Counts through all places of a shape, the last dimension fastest. False after the last.
bool step(std::vector<int64_t>& place, const std::vector<int64_t>& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++place[d] < shape[d]) return true;
    place[d] = 0;
  }
  return false;
}

class Interpreter {
 public:
  Interpreter(const Program& program, std::span<const int64_t> sizes,
              std::span<const HostTensor> inputs)
      : program_(program), sizes_(sizes), values_(program.values.size()) {
    size_t next = 0;
    for (const Parameter& parameter : program.parameters) {
      HostTensor tensor{parameter.type, {}, {}};
      size_t count = 1;
      for (const Extent& extent : parameter.shape) {
        tensor.shape.push_back(extent.at(sizes));
        count *= static_cast<size_t>(tensor.shape.back());
      }
      owners_.emplace_back(parameter.is_output ? count : 0, -1);
      if (parameter.is_output) {
        tensor.bytes.resize(count * static_cast<size_t>(size_of(parameter.type)));
        tensors_.push_back(std::move(tensor));
        continue;
      }
      KILN_CHECK(next < inputs.size() && inputs[next].shape == tensor.shape &&
                 inputs[next].type == parameter.type);
      tensors_.push_back(inputs[next++]);
    }
  }

  std::vector<HostTensor> run() {
    places_.assign(program_.axes.size(), 0);
    std::vector<int64_t> counts;
    for (const Axis& axis : program_.blocks())
      counts.push_back(axis.parts(sizes_));
    if (std::ranges::count(counts, 0) == 0) {
      std::vector<int64_t> block(counts.size(), 0);
      do {
        std::ranges::copy(block, places_.begin());
        run_all(program_.body);
        ++block_;
      } while (step(block, counts));
    }
    std::vector<HostTensor> outputs;
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (program_.parameters[i].is_output) outputs.push_back(std::move(tensors_[i]));
    return outputs;
  }

 private:
  void run_all(const std::vector<Instruction>& body) {
    for (const Instruction& each : body)
      std::visit([&](const auto& what) { run_one(what, each); }, each.what);
  }

  Elements& operand(const Instruction& each, size_t i) { return values_[each.operands[i]]; }
  Elements& result(const Instruction& each) { return values_[each.results[0]]; }
  const TileType& type_of_result(const Instruction& each) const {
    return program_.values[each.results[0]];
  }

  void run_one(const Constant& constant, const Instruction& each) {
    const TileType& type = type_of_result(each);
    const Scalar number = Scalar::of_float(DType::Float64, constant.number);
    result(each).assign(static_cast<size_t>(type.count()),
                        number_of(language::convert(type.element, number)));
  }

  void run_one(const SizeOf& size, const Instruction& each) {
    result(each).assign(1, static_cast<double>(sizes_[size.size]));
  }

  void run_one(const Places& places, const Instruction& each) {
    const int64_t step = program_.axes[places.axis].step;
    Elements& tile = result(each);
    tile.clear();
    for (int64_t within = 0; within < type_of_result(each).count(); ++within)
      tile.push_back(static_cast<double>(places_[places.axis] * step + within));
  }

  /// Calls element(position in the tile, position in the tensor) for all that are in the tensor.
  template <typename Element>
  void for_each_element(const View& view, const std::vector<AxisId>& at, const Element& element) {
    const std::vector<int64_t>& shape = tensors_[view.parameter].shape;
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = strides[d] * shape[d];
    std::vector<int64_t> place(view.tile.size(), 0);
    size_t position = 0;
    do {
      int64_t offset = 0;
      bool is_inside = true;
      for (size_t d = 0; d < place.size(); ++d) {
        const int64_t index = places_[at[d]] * view.tile[d] + place[d];
        is_inside = is_inside && index < shape[view.order[d]];
        offset += index * strides[view.order[d]];
      }
      if (is_inside) element(position, offset);
      ++position;
    } while (step(place, view.tile));
  }

  void run_one(const Load& load, const Instruction& each) {
    const View& view = program_.views[load.view];
    Elements& tile = result(each);
    tile.assign(static_cast<size_t>(type_of_result(each).count()), 0);
    for_each_element(view, load.at, [&](size_t position, int64_t offset) {
      tile[position] = number_of(language::read_element(tensors_[view.parameter], offset));
    });
  }

  /// Where an element is, or nothing outside of the tensor.
  std::optional<int64_t> offset_of(const Window& window, const std::vector<int64_t>& place) const {
    const std::vector<int64_t>& shape = tensors_[window.parameter].shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t index = window.indices[d].offset;
      for (const Term& term : window.indices[d].terms)
        index += term.factor * place[term.axis];
      if (index < 0 || index >= shape[d]) return std::nullopt;
      offset = offset * shape[d] + index;
    }
    return offset;
  }

  /// Rows beyond the end of an axis are NaN, or the least number: no element of an output may
  /// depend on them.
  void run_one(const Window& window, const Instruction& each) {
    Elements& tile = result(each);
    const DType type = type_of_result(each).element;
    const double anything =
        is_float(type) ? std::numeric_limits<double>::quiet_NaN()
                       : number_of(language::convert(type, Scalar::of_int(DType::Int64, 128)));
    tile.clear();
    std::vector<AxisId> axes = window.rows;
    axes.push_back(window.along);
    std::vector<int64_t> steps;
    std::vector<int64_t> place;
    for (const AxisId axis : axes)
      steps.push_back(program_.axes[axis].step);
    for (size_t i = 0; i < program_.axes.size(); ++i)
      place.push_back(places_[i] * program_.axes[i].step);
    const std::vector<int64_t> first = place;
    std::vector<int64_t> within(axes.size(), 0);
    do {
      bool is_row = true;
      for (size_t i = 0; i < axes.size(); ++i) {
        place[axes[i]] = first[axes[i]] + within[i];
        is_row = is_row && (axes[i] == window.along ||
                            place[axes[i]] < program_.axes[axes[i]].extent.at(sizes_));
      }
      const std::optional<int64_t> offset = offset_of(window, place);
      const double element =
          offset ? number_of(language::read_element(tensors_[window.parameter], *offset)) : 0;
      tile.push_back(is_row ? element : anything);
    } while (step(within, steps));
  }

  void run_one(const Store& store, const Instruction& each) {
    const View& view = program_.views[store.view];
    const Elements& tile = operand(each, 0);
    const DType type = program_.parameters[view.parameter].type;
    for_each_element(view, store.at, [&](size_t position, int64_t offset) {
      int64_t& owner = owners_[view.parameter][static_cast<size_t>(offset)];
      if (owner >= 0 && owner != block_) {
        fail(ErrorKind::Internal, "TILE_RACE", "element {} of {} is stored by blocks {} and {}",
             offset, program_.parameters[view.parameter].name, owner, block_);
      }
      owner = block_;
      language::write_element(tensors_[view.parameter], offset, scalar_of(type, tile[position]));
    });
  }

  /// As tensor cores read it: for good, since a tile in float32 that they read has no other use.
  const Elements& factor(const Mma& mma, const Instruction& each, size_t i) {
    Elements& tile = operand(each, i);
    if (!mma.in_tf32) return tile;
    for (double& element : tile) {
      const Scalar whole = scalar_of(DType::Float32, element);
      element = number_of(language::apply_operator(language::Operator::Tf32, {&whole, 1}));
    }
    return tile;
  }

  void run_one(const Mma& mma, const Instruction& each) {
    const Elements& a = factor(mma, each, 0);
    const Elements& b = factor(mma, each, 1);
    Elements sums = operand(each, 2);
    const std::vector<int64_t>& shape = program_.values[each.operands[0]].shape;
    const auto rows = static_cast<size_t>(shape[0]);
    const auto steps = static_cast<size_t>(shape[1]);
    const size_t columns = b.size() / steps;
    const DType type = type_of_result(each).element;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t k = 0; k < steps; ++k) {
        const double factor = a[i * steps + k];
        for (size_t j = 0; j < columns; ++j) {
          double& sum = sums[i * columns + j];
          sum = rounded_sum(type, sum + factor * b[k * columns + j]);
        }
      }
    }
    result(each) = std::move(sums);
  }

  void run_one(const Apply& apply, const Instruction& each) {
    Elements tile(operand(each, 0).size());
    std::vector<Scalar> scalars(each.operands.size());
    for (size_t position = 0; position < tile.size(); ++position) {
      for (size_t i = 0; i < scalars.size(); ++i) {
        const DType type = program_.values[each.operands[i]].element;
        scalars[i] = scalar_of(type, operand(each, i)[position]);
      }
      double& element = tile[position];
      element = number_of(language::apply_operator(apply.function, scalars));
      const bool is_subnormal = element < std::numeric_limits<float>::min();
      if (apply.function == language::Operator::Exp2 && is_subnormal) element = 0;
    }
    result(each) = std::move(tile);
  }

  void run_one(const Reduce& reduce, const Instruction& each) {
    const Elements& tile = operand(each, 0);
    const std::vector<int64_t>& shape = program_.values[each.operands[0]].shape;
    const TileType& type = type_of_result(each);
    int64_t inner = 1;
    for (size_t d = reduce.dimension + 1; d < shape.size(); ++d)
      inner *= shape[d];
    const int64_t count = shape[reduce.dimension];
    const language::Operator function = language::row_of(reduce.combiner).op;
    Elements reduced(static_cast<size_t>(type.count()),
                     number_of(language::identity_of(reduce.combiner, type.element)));
    for (size_t position = 0; position < tile.size(); ++position) {
      const auto place = static_cast<int64_t>(position);
      double& whole = reduced[static_cast<size_t>(place / (inner * count) * inner + place % inner)];
      const std::array operands = {scalar_of(type.element, whole),
                                   scalar_of(type.element, tile[position])};
      whole = number_of(language::apply_operator(function, operands));
    }
    result(each) = std::move(reduced);
  }

  void run_one(const Cast&, const Instruction& each) {
    Elements tile = operand(each, 0);
    const DType from = program_.values[each.operands[0]].element;
    const DType to = type_of_result(each).element;
    for (double& element : tile)
      element = number_of(language::convert(to, scalar_of(from, element)));
    result(each) = std::move(tile);
  }

  void run_one(const Reshape&, const Instruction& each) {
    Elements tile = operand(each, 0);
    result(each) = std::move(tile);
  }

  void run_one(const Broadcast&, const Instruction& each) {
    const std::vector<int64_t>& from = program_.values[each.operands[0]].shape;
    const std::vector<int64_t>& to = type_of_result(each).shape;
    Elements tile;
    std::vector<int64_t> place(to.size(), 0);
    do {
      int64_t source = 0;
      for (size_t d = 0; d < to.size(); ++d)
        source = source * from[d] + (from[d] == 1 ? 0 : place[d]);
      tile.push_back(operand(each, 0)[static_cast<size_t>(source)]);
    } while (step(place, to));
    result(each) = std::move(tile);
  }

  void run_one(const For& loop, const Instruction& each) {
    std::vector<Elements> carried;
    for (size_t i = 0; i < each.operands.size(); ++i)
      carried.push_back(operand(each, i));
    std::vector<int64_t> counts;
    for (const AxisId axis : loop.axes)
      counts.push_back(program_.axes[axis].parts(sizes_));
    // The first part that begins where a value says, or after it.
    const auto part_at = [&](ValueId value) {
      const int64_t step = program_.axes[loop.axes[0]].step;
      const auto at = static_cast<int64_t>(values_[value][0]);
      return std::clamp<int64_t>((at + step - 1) / step, 0, counts[0]);
    };
    if (loop.until) counts[0] = part_at(*loop.until);
    std::vector<int64_t> part(counts.size(), 0);
    if (loop.from) part[0] = part_at(*loop.from);
    bool is_left = std::ranges::count(counts, 0) == 0 && (part.empty() || part[0] < counts[0]);
    while (is_left) {
      for (size_t i = 0; i < part.size(); ++i)
        places_[loop.axes[i]] = part[i];
      for (size_t i = 0; i < carried.size(); ++i)
        values_[loop.carried[i]] = carried[i];
      run_all(loop.body);
      for (size_t i = 0; i < carried.size(); ++i)
        carried[i] = values_[loop.yields[i]];
      is_left = step(part, counts);
    }
    for (size_t i = 0; i < carried.size(); ++i)
      values_[each.results[i]] = std::move(carried[i]);
  }

  const Program& program_;
  const std::span<const int64_t> sizes_;
  std::vector<HostTensor> tensors_;
  std::vector<std::vector<int64_t>> owners_;  // block that stored an element of an output, or -1
  std::vector<Elements> values_;
  std::vector<int64_t> places_;  // on each axis
  int64_t block_ = 0;
};

}  // namespace

std::vector<HostTensor> interpret(const Program& program, std::span<const int64_t> sizes,
                                  std::span<const HostTensor> inputs) {
  return Interpreter(program, sizes, inputs).run();
}

}  // namespace kiln::tile

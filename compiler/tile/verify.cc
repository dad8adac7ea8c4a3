// The rules of the form. They are few, since what a program may say is little: no thread, no
// address, no order of memory. Reads are of inputs and stores of outputs, so that no instruction
// sees what another one has stored.
#include "compiler/tile/verify.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/ranges.h>

#include "compiler/tile/result_type.h"
#include "compiler/tile/tensor_floats.h"

namespace kiln::tile {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 20;  // of a tile; one of sums has 2^15

bool is_power_of_two(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

void require_element(DType type, std::string_view of) {
  if (is_tile_type(type)) return;
  refuse_program(
      "{} has elements of {}; tiles have floats of 8, 16 and 32 bits, int8, uint8 and int32", of,
      type);
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    for (const Parameter& parameter : program_.parameters) {
      require_element(parameter.type, parameter.name);
      verify_rows(parameter);
    }
    for (const Axis& axis : program_.axes) {
      if (!is_power_of_two(axis.step))
        refuse_program("axis {} goes by {}, which is not a power of two", axis.name, axis.step);
    }
    for (const View& view : program_.views)
      verify_view(view);
    for (const TileType& type : program_.values)
      verify_type(type);
    visible_.assign(program_.axes.size(), false);
    std::fill_n(visible_.begin(), program_.block_axes, true);
    known_.assign(program_.values.size(), false);
    made_ = known_;
    tensor_floats_ = tensor_floats(program_);
    verify_all(program_.body);
    for (uint32_t i = 0; i < program_.parameters.size(); ++i) {
      if (program_.parameters[i].is_output && !stored_.contains(i))
        refuse_program("output {} is not stored", program_.parameters[i].name);
    }
  }

 private:
  static void verify_rows(const Parameter& parameter) {
    if (parameter.row_multiple == 0) return;
    if (parameter.shape.empty() || !is_power_of_two(parameter.row_multiple))
      refuse_program("{} has no rows that begin at multiples of {}", parameter.name,
                     parameter.row_multiple);
  }

  static void verify_type(const TileType& type) {
    if (type.element != DType::Bool) require_element(type.element, "a tile");
    if (!std::ranges::all_of(type.shape, is_power_of_two))
      refuse_program("the tile {} has an extent that is not a power of two", text(type));
    if (type.count() > kMostElements) refuse_program("the tile {} is too large", text(type));
  }

  void verify_view(const View& view) const {
    const Parameter& parameter = program_.parameters[view.parameter];
    if (view.tile.size() != parameter.shape.size()) {
      refuse_program("{} has {} dimensions, but its view has tiles of {}", parameter.name,
                     parameter.shape.size(), view.tile.size());
    }
    verify_type({parameter.type, view.tile});
    std::vector<uint32_t> sorted = view.order;
    std::ranges::sort(sorted);
    std::vector<uint32_t> all(view.tile.size());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) {
      refuse_program("the order [{}] of a view of {} does not name each dimension once",
                     fmt::join(view.order, ", "), parameter.name);
    }
  }

  void verify_all(const std::vector<Instruction>& body) {
    for (const Instruction& each : body) {
      for (const ValueId operand : each.operands)
        require_known(operand);
      std::visit([&](const auto& what) { verify_one(what, each); }, each.what);
      verify_tensor_floats(each);
      for (const ValueId result : each.results)
        make_known(result);
    }
  }

  void require_known(ValueId value) const {
    if (value >= known_.size() || !known_[value])
      refuse_program("t{} is used before it is made", value);
  }
  void make_known(ValueId value) {
    if (value >= known_.size() || made_[value]) refuse_program("t{} is made twice", value);
    known_[value] = made_[value] = true;
  }

  /// They are in memory as tensor cores read them, so that nothing has to be done to them.
  void verify_tensor_floats(const Instruction& each) const {
    const bool is_reshape = std::holds_alternative<Reshape>(each.what);
    const bool is_read = is_reshape || std::holds_alternative<Load>(each.what) ||
                         std::holds_alternative<Window>(each.what);
    for (const ValueId result : each.results) {
      if (tensor_floats_[result] && !is_read)
        refuse_program("t{} is a factor in float32 that is no tile of an input", result);
    }
    const bool is_mma = std::holds_alternative<Mma>(each.what);
    for (size_t i = 0; i < each.operands.size(); ++i) {
      const bool is_factor = is_mma ? i < 2 : is_reshape && tensor_floats_[each.results[0]];
      if (tensor_floats_[each.operands[i]] && !is_factor)
        refuse_program("t{} is a factor in float32 and has another use", each.operands[i]);
    }
  }

  const TileType& result_of(const Instruction& each) const {
    if (each.results.size() != 1)
      refuse_program("an instruction has {} results", each.results.size());
    return program_.values[each.results[0]];
  }
  void require_result(const Instruction& each, const TileType& type) const {
    if (result_of(each) != type)
      refuse_program("t{} is {}, but is said to be {}", each.results[0], text(type),
                     text(result_of(each)));
  }

  void verify_one(const Constant&, const Instruction& each) const {
    if (result_of(each).element == DType::Bool)
      refuse_program("t{} is a constant bool", each.results[0]);
  }
  void verify_one(const SizeOf& size, const Instruction& each) const {
    if (size.size >= program_.sizes.size()) refuse_program("there is no size {}", size.size);
    const std::vector<int64_t> ones(result_of(each).shape.size(), 1);
    require_result(each, {DType::Int32, ones});
  }
  void verify_one(const Places& places, const Instruction& each) const {
    const Axis& axis = program_.axes[places.axis];
    if (!visible_[places.axis]) refuse_program("axis {} is used outside of its loop", axis.name);
    const std::vector<int64_t>& shape = result_of(each).shape;
    if (result_of(each).element != DType::Int32)
      refuse_program("places on axis {} are int32", axis.name);
    const auto is_long = [](int64_t extent) { return extent > 1; };
    const int64_t count = result_of(each).count();
    if (count == 1 || (count == axis.step && std::ranges::count_if(shape, is_long) == 1)) return;
    refuse_program("the places on axis {} that a part of {} has are no {}", axis.name, axis.step,
                   text(result_of(each)));
  }
  void verify_one(const Reduce&, const Instruction& each) const {
    require_result(each, result_type(program_, each));
  }
  void verify_one(const Mma&, const Instruction& each) const {
    require_result(each, result_type(program_, each));
  }
  void verify_one(const Apply&, const Instruction& each) const {
    require_result(each, result_type(program_, each));
  }
  void verify_one(const Cast&, const Instruction& each) const {
    require_operands(each, "cast", 1);
    const TileType& from = type_of_operand(program_, each, 0);
    const DType to = result_of(each).element;
    require_result(each, {to, from.shape});
    if (!is_computed(to) || (is_float(from.element) && !is_float(to)))
      refuse_program("{} is not cast to {} on tiles", from.element, to);
  }
  void verify_one(const Reshape&, const Instruction& each) const {
    require_operands(each, "reshape", 1);
    const TileType& from = type_of_operand(program_, each, 0);
    const TileType& to = result_of(each);
    if (from.count() != to.count() || from.element != to.element)
      refuse_program("{} cannot be reshaped to {}", text(from), text(to));
  }
  void verify_one(const Broadcast&, const Instruction& each) const {
    require_operands(each, "broadcast", 1);
    const TileType& from = type_of_operand(program_, each, 0);
    const TileType& to = result_of(each);
    bool fits = from.element == to.element && from.shape.size() == to.shape.size();
    for (size_t d = 0; fits && d < to.shape.size(); ++d)
      fits = from.shape[d] == to.shape[d] || from.shape[d] == 1;
    if (!fits) refuse_program("{} cannot be broadcast to {}", text(from), text(to));
  }

  void verify_one(const Load& load, const Instruction& each) const {
    const Parameter& parameter = verify_place(load.view, load.at);
    if (parameter.is_output) refuse_program("output {} is read", parameter.name);
    require_result(each, {parameter.type, program_.views[load.view].tile});
  }

  void verify_one(const Window& window, const Instruction& each) const {
    const Parameter& parameter = program_.parameters[window.parameter];
    if (parameter.is_output) refuse_program("output {} is read", parameter.name);
    if (window.indices.size() != parameter.shape.size()) {
      refuse_program("a window of {} has {} indices, but {} dimensions", parameter.name,
                     window.indices.size(), parameter.shape.size());
    }
    for (size_t d = 1; d < parameter.shape.size(); ++d) {
      if (parameter.shape[d].size < 0) continue;
      refuse_program("{}, of which a window is read, has more than one open dimension",
                     parameter.name);
    }
    int64_t count = 1;
    for (const AxisId axis : window.rows) {
      if (axis >= program_.block_axes || std::ranges::count(window.rows, axis) > 1)
        refuse_program("axis {} gives a window no rows of a block", program_.axes[axis].name);
      count *= program_.axes[axis].step;
    }
    for (const Index& index : window.indices) {
      for (const Term& term : index.terms)
        verify_term(window, term);
    }
    verify_along(window, parameter);
    require_result(each, {parameter.type, {count, program_.axes[window.along].step}});
  }

  /// An axis is at one place in all of a window, or gives it its rows or columns.
  void verify_term(const Window& window, const Term& term) const {
    const Axis& axis = program_.axes[term.axis];
    if (!visible_[term.axis]) refuse_program("axis {} is used outside of its loop", axis.name);
    if (axis.step == 1 || term.axis == window.along ||
        std::ranges::count(window.rows, term.axis) > 0)
      return;
    refuse_program("a window is over no axis {}, which goes by {}", axis.name, axis.step);
  }

  /// So that 0 is what is beyond the end of the axis, too.
  void verify_along(const Window& window, const Parameter& parameter) const {
    const Index whole{{{window.along, 1}}, 0};
    const auto uses = [&](const Index& index) {
      return std::ranges::count(index.terms, window.along, &Term::axis) > 0;
    };
    const auto last = window.indices.end() - 1;
    const Axis& axis = program_.axes[window.along];
    if (window.indices.empty() || *last != whole ||
        std::any_of(window.indices.begin(), last, uses) || axis.extent != parameter.shape.back())
      refuse_program("axis {} is not the last dimension of {}", axis.name, parameter.name);
  }

  void verify_one(const Store& store, const Instruction& each) {
    const Parameter& parameter = verify_place(store.view, store.at);
    const View& view = program_.views[store.view];
    if (!parameter.is_output) refuse_program("input {} is stored to", parameter.name);
    if (!stored_.insert(view.parameter).second)
      refuse_program("output {} is stored twice", parameter.name);
    require_operands(each, "store", 1);
    const TileType wanted{parameter.type, view.tile};
    if (type_of_operand(program_, each, 0) != wanted) {
      refuse_program("a tile {} is stored where {} has {}",
                     text(type_of_operand(program_, each, 0)), parameter.name, text(wanted));
    }
    for (AxisId axis = 0; axis < program_.block_axes; ++axis) {
      const Extent& extent = program_.axes[axis].extent;
      const bool is_one = extent.size < 0 && extent.constant <= program_.axes[axis].step;
      if (is_one || std::ranges::count(store.at, axis) > 0) continue;
      refuse_program(
          "the place where {} is stored does not name block axis {}, so that several blocks "
          "would store one tile",
          parameter.name, program_.axes[axis].name);
    }
  }

  /// An axis cuts the dimension that it goes along as the view does.
  const Parameter& verify_place(ViewId number, const std::vector<AxisId>& at) const {
    const View& view = program_.views[number];
    const Parameter& parameter = program_.parameters[view.parameter];
    if (at.size() != view.tile.size()) {
      refuse_program("a place in {} has {} axes, but {} dimensions", parameter.name, at.size(),
                     view.tile.size());
    }
    for (size_t d = 0; d < at.size(); ++d) {
      const Axis& axis = program_.axes[at[d]];
      if (!visible_[at[d]]) refuse_program("axis {} is used outside of its loop", axis.name);
      const Extent& extent = parameter.shape[view.order[d]];
      if (axis.extent == extent && axis.step == view.tile[d]) continue;
      refuse_program("axis {} does not go over dimension {} of {} in steps of {}", axis.name,
                     view.order[d], parameter.name, view.tile[d]);
    }
    return parameter;
  }

  void verify_one(const For& loop, const Instruction& each) {
    const size_t count = each.operands.size();
    if (each.results.size() != count || loop.carried.size() != count ||
        loop.yields.size() != count) {
      refuse_program("a loop carries {} values, but has {} operands, {} results and yields {}",
                     loop.carried.size(), count, each.results.size(), loop.yields.size());
    }
    for (const AxisId axis : loop.axes) {
      if (axis < program_.block_axes || !looped_.insert(axis).second)
        refuse_program("axis {} is not that of one loop", program_.axes[axis].name);
      visible_[axis] = true;
    }
    verify_end(loop, loop.from, "begins");
    verify_end(loop, loop.until, "ends");
    const std::vector<bool> outside = known_;
    for (const ValueId carried : loop.carried)
      make_known(carried);
    verify_all(loop.body);
    for (size_t i = 0; i < count; ++i) {
      require_known(loop.yields[i]);
      for (const ValueId value : {loop.carried[i], loop.yields[i], each.results[i]}) {
        if (program_.values[value] == type_of_operand(program_, each, i)) continue;
        refuse_program("a loop begins with {}, but t{} is {}",
                       text(type_of_operand(program_, each, i)), value,
                       text(program_.values[value]));
      }
    }
    for (const std::vector<ValueId>* values : {&loop.carried, &loop.yields}) {
      for (const ValueId value : *values)
        if (tensor_floats_[value])
          refuse_program("t{} is a factor in float32 that a loop carries", value);
    }
    // What the body makes ends with it.
    known_ = outside;
    for (const AxisId axis : loop.axes)
      visible_[axis] = false;
  }

  void verify_end(const For& loop, const std::optional<ValueId>& end, std::string_view what) const {
    if (!end) return;
    require_known(*end);
    const TileType& type = program_.values[*end];
    if (loop.axes.size() != 1)
      refuse_program("a loop that {} elsewhere is over {} axes", what, loop.axes.size());
    if (type.element != DType::Int32 || type.count() != 1)
      refuse_program("a loop {} where {} says, which is no int32", what, text(type));
  }

  const Program& program_;
  std::vector<bool> visible_;  // axes
  std::vector<bool> known_;    // values that may be used here
  std::vector<bool> made_;     // values, anywhere before
  std::vector<bool> tensor_floats_;
  std::set<AxisId> looped_;    // axes of loops
  std::set<uint32_t> stored_;  // parameters
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace kiln::tile

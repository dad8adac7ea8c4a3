// Writes a program as text: parameters by their names, views as v0, v1, .., values as t0, t1, ..
#include <cstdlib>
#include <iterator>
#include <numeric>

#include <fmt/ranges.h>

#include "compiler/tile/text.h"

namespace kiln::tile {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string run() {
    std::vector<std::string> parameters;
    for (const Parameter& parameter : program_.parameters) {
      const std::string rows =
          parameter.row_multiple > 0 ? fmt::format(" rows by {}", parameter.row_multiple) : "";
      parameters.push_back(fmt::format("{}: {}[{}]{}{}", parameter.name, parameter.type,
                                       fmt::join(extents(parameter.shape), ", "), rows,
                                       parameter.is_output ? " output" : ""));
    }
    const std::string sizes =
        program_.sizes.empty() ? "" : fmt::format("[{}]", fmt::join(program_.sizes, ", "));
    line("tile {}{}({}) {{", program_.name, sizes, fmt::join(parameters, ", "));
    ++depth_;
    print_blocks();
    for (size_t i = 0; i < program_.views.size(); ++i)
      print_view(i);
    print_all(program_.body);
    --depth_;
    line("}}");
    return std::move(out_);
  }

 private:
  void print_blocks() {
    std::vector<std::string> axes;
    for (const Axis& axis : program_.blocks())
      axes.push_back(text(axis));
    line("blocks {}", fmt::join(axes, ", "));
  }

  void print_view(size_t number) {
    const View& view = program_.views[number];
    std::vector<uint32_t> plain(view.order.size());
    std::iota(plain.begin(), plain.end(), 0);
    const std::string order =
        view.order == plain ? "" : fmt::format(" order [{}]", fmt::join(view.order, ", "));
    line("view v{} = {}[{}]{}", number, program_.parameters[view.parameter].name,
         fmt::join(view.tile, ", "), order);
  }

  void print_all(const std::vector<Instruction>& body) {
    for (const Instruction& each : body)
      std::visit([&](const auto& what) { print(what, each); }, each.what);
  }

  void print(const Constant& constant, const Instruction& each) {
    const TileType& type = program_.values[each.results[0]];
    line("{} = constant {}[{}] {}", result(each), type.element, fmt::join(type.shape, ", "),
         constant.number);
  }
  void print(const SizeOf& size, const Instruction& each) {
    line("{} = size [{}] {}", result(each), shape_of(each), program_.sizes[size.size]);
  }
  void print(const Places& places, const Instruction& each) {
    line("{} = places [{}] {}", result(each), shape_of(each), program_.axes[places.axis].name);
  }
  void print(const Load& load, const Instruction& each) {
    line("{} = load v{}[{}]", result(each), load.view, places(load.at));
  }
  void print(const Window& window, const Instruction& each) {
    std::vector<std::string> indices;
    for (const Index& index : window.indices)
      indices.push_back(text(index));
    line("{} = window {}[{}] over {} by {}", result(each),
         program_.parameters[window.parameter].name, fmt::join(indices, ", "), places(window.rows),
         program_.axes[window.along].name);
  }
  void print(const Store& store, const Instruction& each) {
    line("store v{}[{}] = t{}", store.view, places(store.at), each.operands[0]);
  }
  void print(const Mma& mma, const Instruction& each) {
    const std::string_view name = mma.in_tf32 ? "mma_tf32" : mma.is_fast ? "mma_fast" : "mma";
    line("{} = {} {}", result(each), name, values(each.operands));
  }
  void print(const Apply& apply, const Instruction& each) {
    line("{} = {} {}", result(each), language::row_of(apply.function).spelling,
         values(each.operands));
  }
  void print(const Reduce& reduce, const Instruction& each) {
    line("{} = reduce {} {} {}", result(each), language::row_of(reduce.combiner).spelling,
         reduce.dimension, values(each.operands));
  }
  void print(const Cast&, const Instruction& each) {
    line("{} = cast {} {}", result(each), program_.values[each.results[0]].element,
         values(each.operands));
  }
  void print(const Reshape&, const Instruction& each) { print_shaped("reshape", each); }
  void print(const Broadcast&, const Instruction& each) { print_shaped("broadcast", each); }
  void print(const For& loop, const Instruction& each) {
    std::vector<std::string> carried;
    for (size_t i = 0; i < loop.carried.size(); ++i)
      carried.push_back(fmt::format("t{} = t{}", loop.carried[i], each.operands[i]));
    std::vector<std::string> axes;
    for (const AxisId axis : loop.axes)
      axes.push_back(text(program_.axes[axis]));
    const std::string from = loop.from ? fmt::format(" from t{}", *loop.from) : "";
    const std::string until = loop.until ? fmt::format(" until t{}", *loop.until) : "";
    line("{} = for {}{}{} with {} {{", values(each.results), fmt::join(axes, ", "), from, until,
         fmt::join(carried, ", "));
    ++depth_;
    print_all(loop.body);
    line("yield {}", values(loop.yields));
    --depth_;
    line("}}");
  }

  void print_shaped(std::string_view what, const Instruction& each) {
    line("{} = {} [{}] {}", result(each), what, shape_of(each), values(each.operands));
  }
  std::string shape_of(const Instruction& each) const {
    return fmt::format("{}", fmt::join(program_.values[each.results[0]].shape, ", "));
  }

  std::string text(const Extent& extent) const {
    return extent.size < 0 ? fmt::to_string(extent.constant)
                           : program_.sizes[static_cast<size_t>(extent.size)];
  }
  std::string text(const Axis& axis) const {
    return fmt::format("{}: {} by {}", axis.name, text(axis.extent), axis.step);
  }
  /// `y*2 + ry - 1`
  std::string text(const Index& index) const {
    std::string result;
    const auto add = [&](bool is_negative, const std::string& part) {
      if (!result.empty()) result += is_negative ? " - " : " + ";
      if (result.empty() && is_negative) result += "-";
      result += part;
    };
    for (const Term& term : index.terms) {
      const int64_t factor = std::abs(term.factor);
      const std::string& name = program_.axes[term.axis].name;
      add(term.factor < 0, factor == 1 ? name : fmt::format("{}*{}", name, factor));
    }
    if (index.offset != 0 || index.terms.empty())
      add(index.offset < 0, fmt::to_string(std::abs(index.offset)));
    return result;
  }
  std::vector<std::string> extents(const std::vector<Extent>& shape) const {
    std::vector<std::string> result;
    for (const Extent& extent : shape)
      result.push_back(text(extent));
    return result;
  }
  std::string places(const std::vector<AxisId>& at) const {
    std::vector<std::string> names;
    for (const AxisId axis : at)
      names.push_back(program_.axes[axis].name);
    return fmt::format("{}", fmt::join(names, ", "));
  }
  static std::string values(const std::vector<ValueId>& ids) {
    std::vector<std::string> names;
    for (const ValueId id : ids)
      names.push_back(fmt::format("t{}", id));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  static std::string result(const Instruction& each) { return values(each.results); }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * static_cast<size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  const Program& program_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace kiln::tile

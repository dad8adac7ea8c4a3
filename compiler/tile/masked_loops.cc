// Finds the instructions of one loop in another one, in their order.
//
//   for j until t12 { s = mma .. ; m = reduce max s ; .. }
//   for j from t12 { t = mma .. ; u = select (j <= i) t -inf ; n = reduce max u ; .. }
//     ->  u is t where the first loop goes
#include "compiler/tile/masked_loops.h"

#include <algorithm>

namespace kiln::tile {
namespace {

class Twins {
 public:
  Twins(const Program& program, const For& first, const For& second)
      : program_(program), first_(first), second_(second), makers_(program.values.size()) {
    note_makers(program.body);
  }

  std::optional<Masks> run() {
    for (size_t i = 0; i < first_.carried.size(); ++i)
      twin_[first_.carried[i]] = second_.carried[i];
    auto next = second_.body.begin();
    for (const Instruction& each : first_.body) {
      if (std::holds_alternative<Constant>(each.what)) continue;
      while (next != second_.body.end() && !are_twins(each, *next))
        if (!pass(*next++)) return std::nullopt;
      if (next == second_.body.end()) return std::nullopt;
      for (size_t i = 0; i < each.results.size(); ++i)
        twin_[each.results[i]] = next->results[i];
      ++next;
    }
    for (; next != second_.body.end(); ++next)
      if (!pass(*next)) return std::nullopt;
    for (size_t i = 0; i < first_.yields.size(); ++i)
      if (!is_twin(first_.yields[i], second_.yields[i])) return std::nullopt;
    return masks_;
  }

 private:
  void note_makers(const std::vector<Instruction>& body) {
    for (const Instruction& each : body) {
      for (const ValueId result : each.results)
        makers_[result] = &each;
      if (const auto* loop = std::get_if<For>(&each.what)) note_makers(loop->body);
    }
  }

  /// An instruction that the first loop has not.
  bool pass(const Instruction& each) {
    const auto* apply = std::get_if<Apply>(&each.what);
    if (apply == nullptr)
      return std::holds_alternative<Constant>(each.what) ||
             std::holds_alternative<SizeOf>(each.what) ||
             std::holds_alternative<Places>(each.what) ||
             std::holds_alternative<Reshape>(each.what) ||
             std::holds_alternative<Broadcast>(each.what);
    if (apply->function != language::Operator::Select || constant_of(each.operands[2]) == nullptr)
      return true;
    const ValueId chosen = each.operands[1];
    const auto masked =
        std::ranges::find(twin_, chosen, &std::pair<const ValueId, ValueId>::second);
    if (masked == twin_.end()) return true;
    masked->second = each.results[0];
    const auto before = masks_.find(chosen);
    masks_[each.results[0]] = before == masks_.end() ? chosen : before->second;
    return true;
  }

  const Constant* constant_of(ValueId value) const {
    const Instruction* maker = makers_[value];
    return maker == nullptr ? nullptr : std::get_if<Constant>(&maker->what);
  }
  bool is_twin(ValueId first, ValueId second) const {
    const auto known = twin_.find(first);
    if (known != twin_.end()) return known->second == second;
    if (first == second) return true;
    const Constant* a = constant_of(first);
    const Constant* b = constant_of(second);
    return a != nullptr && b != nullptr && *a == *b &&
           program_.values[first] == program_.values[second];
  }
  AxisId twin_of(AxisId axis) const { return axis == first_.axes[0] ? second_.axes[0] : axis; }

  bool are_twins(const Instruction& a, const Instruction& b) const {
    if (a.what.index() != b.what.index() || a.operands.size() != b.operands.size() ||
        a.results.size() != b.results.size() || std::holds_alternative<For>(a.what))
      return false;
    decltype(a.what) what = a.what;
    if (auto* load = std::get_if<Load>(&what))
      std::ranges::transform(load->at, load->at.begin(), [&](AxisId at) { return twin_of(at); });
    if (auto* places = std::get_if<Places>(&what)) places->axis = twin_of(places->axis);
    if (!(what == b.what)) return false;
    for (size_t i = 0; i < a.operands.size(); ++i)
      if (!is_twin(a.operands[i], b.operands[i])) return false;
    for (size_t i = 0; i < a.results.size(); ++i)
      if (program_.values[a.results[i]] != program_.values[b.results[i]]) return false;
    return true;
  }

  const Program& program_;
  const For& first_;
  const For& second_;
  std::vector<const Instruction*> makers_;  // of what no loop carries
  std::map<ValueId, ValueId> twin_;         // of values of the first loop, in the second
  Masks masks_;
};

}  // namespace

std::optional<Masks> masks_of_second(const Program& program, const Instruction& first,
                                     const Instruction& second) {
  const auto* begin = std::get_if<For>(&first.what);
  const auto* end = std::get_if<For>(&second.what);
  if (begin == nullptr || end == nullptr || begin->axes.size() != 1 || end->axes.size() != 1)
    return std::nullopt;
  const Axis& along = program.axes[begin->axes[0]];
  const Axis& further = program.axes[end->axes[0]];
  const bool goes_on = along.extent == further.extent && along.step == further.step &&
                       !begin->from && begin->until && begin->until == end->from &&
                       second.operands == first.results;
  if (!goes_on) return std::nullopt;
  return Twins(program, *begin, *end).run();
}

}  // namespace kiln::tile

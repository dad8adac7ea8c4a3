// Writes down what each thread of a block does of a program on tiles.
//
//   t3 = mma t1, t2, t0             each thread adds up its part of the sums, of factors in shared
//   t4 = reduce max 1 t3            memory; reduces what it has of a row, and asks the threads of
//   t5 = exp2 (t3 - broadcast t4)   the row for theirs; and has the same part of what is computed
//
// A tile that is read more than once is in registers, each thread's part in its own; any other is
// an expression where it is read. Factors of a loop are copied where it begins, so that threads
// wait for them together; those of tensor cores in the background, the first one while the
// iteration before computes what follows from its product, the second one meanwhile:
//
//   background { K[0] }; await
//   for p: background { V[p] }; S = Q K; background { K[p + 1] }; P = ..; await; O = O + P V
//
// Of two loops of which the second one masks what the first one takes as it is, one is made that
// masks from there on: half of the code (masked_loops.cc).
#include "compiler/tile/thread_loops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/tile/form_error.h"
#include "compiler/tile/masked_loops.h"
#include "compiler/tile/shared_factors.h"
#include "compiler/tile/shared_steps.h"
#include "compiler/tile/thread_elements.h"
#include "compiler/tile/thread_products.h"

namespace kiln::tile {
namespace {

using namespace ir;

class ThreadLoops {
 public:
  ThreadLoops(const Program& program, int64_t warps, bool has_matrices)
      : program_(program),
        uses_(program),
        places_(program),
        layout_(warps, has_matrices),
        factors_(program, places_, layout_),
        elements_(program, uses_, places_) {}

  ir::Kernel run() {
    const VarRef block = Var::make("blockIdx.x");
    Expr blocks = index(1);
    Expr rest = block;
    for (AxisId axis = program_.block_axes; axis-- > 0;) {
      const Expr parts = places_.parts_of(axis);
      places_.set_part(axis, axis == 0 ? rest : floormod(rest, parts));
      rest = floordiv(rest, parts);
      blocks = blocks * parts;
    }
    write_all(program_.body);
    std::vector<Stmt> all = factors_.first();
    all.insert(all.end(), out_.begin(), out_.end());
    Stmt body = Block::make(std::move(all));
    for (auto local = locals_.rbegin(); local != locals_.rend(); ++local)
      body = Allocate::make(*local, std::move(body));
    body = layout_.around(std::move(body));
    for (const BufferRef& memory : factors_.memory())
      body = Allocate::make(memory, std::move(body));

    ir::Kernel kernel;
    kernel.name = program_.name;
    kernel.sizes = places_.sizes();
    kernel.parameters = places_.tensors();
    for (const Parameter& parameter : program_.parameters)
      kernel.is_output.push_back(parameter.is_output);
    kernel.body = ir::For::make(block, blocks, LoopKind::ThreadIndex, ThreadAxis::BlockX, body);
    return kernel;
  }

 private:
  const TileType& type_of(ValueId value) const { return program_.values[value]; }
  Stmt for_each(const std::vector<int64_t>& shape,
                const std::function<Stmt(const Indices&)>& body) const {
    return for_each_element(layout_.shares_of(shape), body);
  }

  void write_all(const std::vector<Instruction>& body) {
    for (const Instruction& each : body)
      if (uses_.factor_of(each) != nullptr) copy(each, out_);
    write_after_copies(body);
  }
  void copy(const Instruction& load, std::vector<Stmt>& out) {
    const ValueUses::Factor& factor = *uses_.factor_of(load);
    copied_[factor.value] = factors_.copied(std::get<tile::Load>(load.what), factor, out);
  }
  void write_after_copies(const std::vector<Instruction>& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      const Instruction& each = body[i];
      if (i + 1 < body.size() && are_read_by(body[i + 1], each.results)) {
        const std::optional<Masks> masks = masks_of_second(program_, each, body[i + 1]);
        if (masks) {
          write_both(each, body[++i], *masks);
          continue;
        }
      }
      std::visit([&](const auto& what) { write(what, each); }, each.what);
    }
  }
  /// Whether nothing but the instruction does.
  bool are_read_by(const Instruction& reader, const std::vector<ValueId>& values) const {
    return !values.empty() && reader.operands == values &&
           std::ranges::all_of(values, [&](ValueId value) { return uses_.count_of(value) == 1; });
  }
  void add(Stmt stmt) { out_.push_back(std::move(stmt)); }

  /// What is computed where it is read.
  template <typename T>
  void write(const T&, const Instruction& each) {
    for (const ValueId result : each.results)
      if (elements_.is_kept(result) && can_be_kept(each)) keep(result);
  }
  static bool can_be_kept(const Instruction& each) {
    return std::holds_alternative<Apply>(each.what) ||
           std::holds_alternative<tile::Cast>(each.what);
  }

  BufferRef add_registers(ValueId value) {
    const TileType& type = type_of(value);
    if (type.shape.size() != 2 || type.element == DType::Bool || type.element == DType::Int32)
      refuse_form("threads keep rows and columns of floats alone");
    const Shares shares = layout_.shares_of(type.shape);
    std::vector<Expr> shape;
    for (const Share& share : shares)
      shape.push_back(index(share.outer));
    for (const Share& share : shares)
      shape.push_back(index(share.inner));
    locals_.push_back(
        Buffer::make(fmt::format("t{}", value), type.element, std::move(shape), Scope::Local));
    return locals_.back();
  }

  void keep(ValueId value) {
    if (elements_.are_in_registers(value)) return;
    const BufferRef registers = add_registers(value);
    const auto masked = masks_ ? masks_->values->find(value) : Masks::const_iterator();
    if (masks_ && masked != masks_->values->end()) {
      assign(registers, type_of(value).shape, masked->second);
      std::vector<Stmt> around = std::exchange(out_, {});
      assign(registers, type_of(value).shape, value);
      around.push_back(If::make(masks_->is_masked, Block::make(std::exchange(out_, {}))));
      out_ = std::move(around);
    } else {
      assign(registers, type_of(value).shape, value);
    }
    elements_.set_registers(value, registers);
  }
  void assign(const BufferRef& registers, const std::vector<int64_t>& shape, ValueId value) {
    add(for_each(shape, [&](const Indices& at) {
      return ir::Store::make(registers, own_place(at), elements_(value, at));
    }));
  }

  void write(const Reduce& reduce, const Instruction& each) {
    if (reduce.dimension != 1) refuse_form("threads reduce rows alone");
    const ValueId result = each.results[0];
    const ValueId operand = each.operands[0];
    const BufferRef registers = add_registers(result);
    elements_.set_registers(result, registers);
    const std::vector<int64_t>& shape = type_of(operand).shape;
    const DType type = type_of(result).element;
    add(for_each(type_of(result).shape, [&](const Indices& at) {
      return ir::Store::make(registers, own_place(at), ir::identity_of(reduce.combiner, type));
    }));
    const auto own = [&](const Indices& at) { return own_place({at[0], alone_along()}); };
    add(for_each(shape, [&](const Indices& at) {
      return ir::Store::make(
          registers, own(at),
          combine(reduce.combiner, ir::Load::make(registers, own(at)), elements_(operand, at)));
    }));
    add(for_each(type_of(result).shape,
                 [&](const Indices& at) { return all_of_row(reduce.combiner, registers, at); }));
  }

  /// Each thread of a row has what all of them have together.
  Stmt all_of_row(Combiner combiner, const BufferRef& registers, const Indices& at) const {
    const int64_t lanes = layout_.threads_of_row();
    const std::vector<Expr> place = own_place(at);
    const BufferRef other = Buffer::make("other", registers->type, {index(1)}, Scope::Local);
    const Expr own = ir::Load::make(registers, place);
    std::vector<Stmt> steps;
    for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
      steps.push_back(Shuffle::make(static_cast<int>(distance), nullptr, static_cast<int>(lanes),
                                    other, {index(0)}, own));
      steps.push_back(ir::Store::make(registers, place,
                                      combine(combiner, own, ir::Load::make(other, {index(0)}))));
    }
    steps.push_back(Shuffle::make(0, index(0), static_cast<int>(lanes), registers, place, own));
    return Allocate::make(other, Block::make(std::move(steps)));
  }

  SharedFactor rows_of(ValueId factor) {
    const auto copied = copied_.find(factor);
    if (copied != copied_.end()) return copied->second;
    const TileType& type = type_of(factor);
    const SharedFactor computed = factors_.computed(type.element, type.shape[0], type.shape[1]);
    add(for_each(type.shape, [&](const Indices& at) {
      Expr value = elements_(factor, at);
      const DType stored = computed.memory->type;
      if (value->type.element != stored) value = ir::Cast::make({stored, 1}, value);
      return ir::Store::make(computed.memory, computed.indices(at[0].place, at[1].place), value);
    }));
    return computed;
  }

  void write(const Mma& mma, const Instruction& each) {
    const ValueId result = each.results[0];
    if (mma.in_tf32 || type_of(result).element != DType::Float32)
      refuse_form("threads add up products of floats in float32");
    if (!copied_.contains(each.operands[1])) refuse_form("threads multiply by what is loaded");
    const SharedFactor rows = rows_of(each.operands[0]);
    const SharedFactor& columns = copied_.at(each.operands[1]);
    const BufferRef sums = sums_of(each);
    elements_.set_registers(result, sums);
    const int64_t steps = std::min(rows.steps, columns.steps);
    const ThreadProduct product{.sums = sums,
                                .shares = layout_.shares_of(type_of(result).shape),
                                .rows = rows,
                                .columns = columns,
                                .steps = steps};
    if (fetches_ && is_factor(each.operands[1], *fetches_->second)) add(Await::make(0));
    add(layout_.has_matrices()      ? by_matrices(product)
        : are_steps_shared(product) ? by_lanes_with_shared_steps(product)
                                    : by_lanes(product));
    if (fetches_ && is_factor(each.operands[1], *fetches_->first)) fetch_next();
  }

  /// The registers of what is added to, where nobody else reads that.
  BufferRef sums_of(const Instruction& each) {
    const ValueId start = each.operands[2];
    ValueId before = start;
    if (!elements_.are_in_registers(start) && uses_.count_of(start) == 1) {
      for (const ValueId operand : uses_.maker_of(start).operands)
        if (elements_.are_in_registers(operand) && type_of(operand) == type_of(start))
          before = operand;
    }
    const bool is_alone = elements_.are_in_registers(before) && uses_.count_of(before) == 1;
    const BufferRef sums =
        is_alone ? elements_.registers_of(before) : add_registers(each.results[0]);
    if (!is_alone || before != start) assign(sums, type_of(start).shape, start);
    return sums;
  }

  /// The factors of a loop's two products, which are copied in the background.
  struct Fetches {
    const Instruction* first = nullptr;
    const Instruction* second = nullptr;
    AxisId axis = 0;
    Expr next;  // the part that the iteration after this one is at
  };
  /// Values of a loop that are masked in some parts alone.
  struct Masked {
    const Masks* values = nullptr;
    Expr is_masked;
  };
  std::optional<Fetches> fetches_of(const tile::For& loop) const {
    if (!layout_.has_matrices()) return std::nullopt;
    std::vector<const Instruction*> loads;
    std::vector<ValueId> multiplied;
    for (const Instruction& each : loop.body) {
      if (uses_.factor_of(each) != nullptr) loads.push_back(&each);
      if (std::holds_alternative<Mma>(each.what)) multiplied.push_back(each.operands[1]);
    }
    if (loads.size() != 2 || multiplied.size() != 2) return std::nullopt;
    if (!is_factor(multiplied[0], *loads[0])) std::swap(loads[0], loads[1]);
    for (const size_t i : {0, 1})
      if (!is_factor(multiplied[i], *loads[i])) return std::nullopt;
    return Fetches{loads[0], loads[1], loop.axes[0], {}};
  }
  Stmt fetched(const Instruction& load) {
    std::vector<Stmt> copies;
    copy(load, copies);
    return Background::make(Block::make(std::move(copies)));
  }
  /// Of the part that is next.
  void fetch_next() {
    const Expr part = places_.part_of(fetches_->axis);
    places_.set_part(fetches_->axis, fetches_->next);
    add(fetched(*fetches_->first));
    places_.set_part(fetches_->axis, part);
  }
  bool is_factor(ValueId value, const Instruction& load) const {
    return uses_.factor_of(load)->value == value;
  }

  void write(const tile::For& loop, const Instruction& each) {
    write_loop(loop, each, each.operands, nullptr);
  }
  /// Two loops as one, which masks where the second one would.
  void write_both(const Instruction& first, const Instruction& second, const Masks& masks) {
    write_loop(std::get<tile::For>(second.what), second, first.operands, &masks);
  }

  /// The part of an axis that begins at a place, or the next one.
  Expr part_at(AxisId axis, ValueId place) const {
    const Indices alone(type_of(place).shape.size(), alone_along());
    return max(ceildiv(elements_(place, alone), index(program_.axes[axis].step)), index(0));
  }

  /// With masks the loop begins at the first part, and masks from where it says that it begins.
  void write_loop(const tile::For& loop, const Instruction& each,
                  const std::vector<ValueId>& starts, const Masks* masks) {
    if (loop.axes.size() != 1) refuse_form("threads go along one axis at a time");
    const AxisId axis = loop.axes[0];
    for (size_t i = 0; i < loop.carried.size(); ++i)
      elements_.set_registers(loop.carried[i], carried_registers(loop.carried[i], starts[i]));
    Expr end = places_.parts_of(axis);
    if (loop.until) end = min(part_at(axis, *loop.until), end);
    const bool begins_later = loop.from && masks == nullptr;
    const Expr begin = begins_later ? part_at(axis, *loop.from) : index(0);
    const VarRef part = Var::make(program_.axes[axis].name);
    const Expr count = begins_later ? max(end - begin, index(0)) : end;
    const auto masks_around = std::exchange(masks_, std::nullopt);
    if (masks != nullptr) masks_ = Masked{masks, less_equal(part_at(axis, *loop.from), Expr(part))};
    const auto fetches_around = std::exchange(fetches_, fetches_of(loop));
    if (fetches_) {
      const Expr last = max(places_.parts_of(axis) - 1, index(0));
      fetches_->next = min(begin, last);
      std::vector<Stmt> before = std::exchange(out_, {});
      fetch_next();
      before.push_back(If::make(less(index(0), count), Block::make(std::exchange(out_, {}))));
      out_ = std::move(before);
      add(Await::make(0));
      fetches_->next = min(Expr(part) + begin + 1, last);
    }
    places_.set_part(axis, Expr(part) + begin);

    std::vector<Stmt> around = std::exchange(out_, {});
    if (fetches_) {
      add(fetched(*fetches_->second));
      write_after_copies(loop.body);
    } else {
      write_all(loop.body);
    }
    for (const ValueId yielded : loop.yields)
      keep(yielded);
    for (size_t i = 0; i < loop.yields.size(); ++i) {
      const BufferRef& carried = elements_.registers_of(loop.carried[i]);
      if (elements_.registers_of(loop.yields[i]) == carried) continue;
      assign(carried, type_of(loop.yields[i]).shape, loop.yields[i]);
    }
    Stmt body = Block::make(std::exchange(out_, std::move(around)));
    add(ir::For::make(part, count, LoopKind::Serial, std::move(body)));
    fetches_ = fetches_around;
    masks_ = masks_around;
    for (size_t i = 0; i < each.results.size(); ++i)
      elements_.set_registers(each.results[i], elements_.registers_of(loop.carried[i]));
  }

  /// What a loop begins with, in registers that it may change.
  BufferRef carried_registers(ValueId carried, ValueId start) {
    if (elements_.are_in_registers(start) && uses_.count_of(start) == 1)
      return elements_.registers_of(start);
    const BufferRef registers = add_registers(carried);
    assign(registers, type_of(start).shape, start);
    return registers;
  }

  /// Neighbours at once; what is beyond the end of the tensor is not stored.
  void write(const tile::Store& store, const Instruction& each) {
    const View& view = program_.views[store.view];
    ValueId value = each.operands[0];
    while (type_of(value).shape.size() != 2 &&
           std::holds_alternative<Reshape>(uses_.maker_of(value).what))
      value = uses_.maker_of(value).operands[0];
    const std::vector<size_t> dimensions = long_dimensions(view);
    if (dimensions.size() != 2 || type_of(value).shape.size() != 2)
      refuse_form("threads store rows and columns");
    const Shares shares = layout_.shares_of(type_of(value).shape);
    ThreadNest nest;
    const Expr ro = nest.add("rows", shares[0].outer);
    const Expr co = nest.add("columns", shares[1].outer);
    const Expr ri = nest.add("row", shares[0].inner);
    const VarRef lane = Var::make("column");
    const Indices at = {shares[0].at(ro, ri), shares[1].at(co, lane)};
    std::vector<Expr> place(view.tile.size(), index(0));
    for (const size_t side : {0, 1})
      place[dimensions[side]] = at[side].place;
    const std::vector<Expr> indices = places_.place_of(view, store.at, place);
    Expr is_inside = boolean(true);
    for (const size_t d : dimensions) {
      if (places_.may_end(view, d))
        is_inside =
            logical_and(is_inside, less(indices[view.order[d]], places_.extent_of(view, d)));
    }
    Stmt body = ir::Store::make(places_.tensor_of(view), indices, elements_(value, at));
    if (!is_const(is_inside, 1)) body = If::make(is_inside, std::move(body));
    body = ir::For::make(lane, index(shares[1].inner), LoopKind::Vectorized, std::move(body));
    add(nest.around(std::move(body), LoopKind::Unrolled));
  }

  const Program& program_;
  const ValueUses uses_;
  TensorPlaces places_;
  const ThreadLayout layout_;
  SharedFactors factors_;
  ThreadElements elements_;
  std::map<ValueId, SharedFactor> copied_;
  std::vector<BufferRef> locals_;
  std::optional<Fetches> fetches_;  // of the loop around
  std::optional<Masked> masks_;     // likewise
  std::vector<Stmt> out_;
};

}  // namespace

ir::Kernel thread_loops(const Program& program, int64_t warps, bool has_matrices) {
  return ThreadLoops(program, warps, has_matrices).run();
}

}  // namespace kiln::tile

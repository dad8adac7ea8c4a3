// Writes a sequence as a module with an entry for each program: sections of code, constants, types
// and names, each entry of which is referred to by its number. Values are numbered as they are
// made; those of a loop's body are forgotten at its end, so that its results have the numbers of
// its first ones.
#include "compiler/tile/bytecode.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "compiler/language/evaluate/scalar.h"
#include "compiler/tile/bytecode_code.h"
#include "compiler/tile/bytecode_functions.h"
#include "compiler/tile/bytecode_sizes.h"
#include "compiler/tile/bytecode_views.h"
#include "compiler/tile/bytecode_window.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

enum Section : uint8_t { kEnd = 0, kStrings = 1, kFunctions = 2, kConstants = 4, kTypes = 5 };

/// Writes the entry of one program of a sequence.
class EntryWriter : CodeWriter {
 public:
  EntryWriter(ModuleTables& module, const Sequence& sequence, const Sequence::Step& step)
      : CodeWriter(module),
        module_(module),
        sequence_(sequence),
        step_(step),
        program_(step.program),
        views_(*this, step.program),
        values_(step.program.values.size()),
        places_(step.program.axes.size()) {}

  void run(Bytes& functions, const std::string& entry, const BytecodeOptions& options) {
    functions.number(module_.strings[entry]);
    functions.number(signature());
    constexpr uint8_t kIsEntry = 0x02;
    constexpr uint8_t kHasHints = 0x04;
    functions.byte(options.warps > 0 ? kIsEntry | kHasHints : kIsEntry);
    functions.number(0);  // where in the source: nowhere
    if (options.warps > 0) write_hints(functions, options);
    write_entry();
    functions.number(code.bytes.size());
    functions.append(code.bytes.text());
  }

 private:
  TypeNumber pointer_to(TypeNumber element) { return types.tile(types.pointer(element), {}); }
  bool has_workspace() const { return !sequence_.left().empty(); }
  /// Strides, which stand between the sizes and the workspace.
  size_t stride_count() const {
    size_t count = 0;
    for (const Parameter& tensor : std::span(sequence_.tensors).first(sequence_.given))
      count += tensor.shape.size();
    return count;
  }

  uint64_t signature() {
    std::vector<TypeNumber> taken;
    for (const Parameter& tensor : std::span(sequence_.tensors).first(sequence_.given))
      taken.push_back(pointer_to(types.element(tensor.type)));
    taken.insert(taken.end(), program_.sizes.size(), scalar(DType::Int64));
    if (has_workspace()) {
      taken.insert(taken.end(), stride_count(), scalar(DType::Int64));
      taken.push_back(pointer_to(types.element(DType::UInt8)));
    }
    return types.function(taken);
  }

  void write_hints(Bytes& out, const BytecodeOptions& options) {
    out.byte(kHintsTag);
    out.number(1);
    out.number(module_.strings[std::string(options.arch)]);
    out.byte(kDictionaryTag);
    out.number(1);
    out.number(module_.strings["num_worker_warps_per_cta"]);
    out.byte(kIntegerTag);
    out.number(types.element(DType::Int32));
    out.number(static_cast<uint64_t>(options.warps));
  }

  /// A pointer to what a program leaves there, or to what is read in its place. Of pointers
  /// themselves tileiras (13.5) chooses none.
  Value pointer_to_left(const Parameter& tensor, Value begin, std::optional<Value> spared) {
    const TypeNumber type = pointer_to(types.element(tensor.type));
    const Value left = plain(kPtrToPtr, type, {}, {begin});
    if (!spared) return left;
    const TypeNumber number = scalar(DType::Int64);
    const Value is_even =
        plain(kCmpI, scalar(DType::Bool), {kIsEqual, kSigned},
              {write_size(*this, has_even_rows(tensor), sizes_), integer(DType::Int64, 1)});
    const Value chosen = plain(
        kSelect, number, {},
        {is_even, plain(kPtrToInt, number, {}, {*spared}), plain(kPtrToInt, number, {}, {left})});
    return plain(kIntToPtr, type, {}, {chosen});
  }

  /// Pointers to what programs leave, in the workspace.
  void add_left(std::vector<Value>& pointers, Value workspace) {
    std::optional<SizeExpr> before;
    for (size_t i = sequence_.given; i < sequence_.tensors.size(); ++i) {
      const Sequence::Step& step = step_that_leaves(sequence_, i);
      const TypeNumber bytes = pointer_to(types.element(DType::UInt8));
      Value begin = workspace;
      if (before)
        begin = plain(kOffset, bytes, {}, {workspace, write_size(*this, *before, sizes_)});
      std::optional<Value> spared;
      if (step.is_spared) spared = pointers[step.tensors[0]];
      pointers.push_back(pointer_to_left(sequence_.tensors[i], begin, spared));
      const SizeExpr own = left_bytes(sequence_, i);
      before = before ? SizeExpr::binary(SizeExpr::Op::Add, *before, own) : own;
    }
  }

  /// A size, of which calls that the sequence is for say that it is short, and what it is a
  /// multiple of: without that there are no copies without threads.
  Value known_size(size_t number) {
    const TypeNumber type = scalar(DType::Int64);
    const Value size = bounded(type, kMostSize, sizes_[number]);
    const int64_t of = multiple_of_size(sequence_, number);
    return of > 1 ? multiple(type, of, size) : size;
  }

  /// What the entry is given, as the pointers of its parameters.
  std::vector<Value> taken_pointers() {
    std::vector<Value> pointers;
    for (uint32_t i = 0; i < sequence_.given; ++i)
      pointers.push_back(next++);
    for (size_t i = 0; i < program_.sizes.size(); ++i)
      sizes_.push_back(next++);
    const Value workspace = has_workspace() ? next + stride_count() : 0;
    if (has_workspace()) next = workspace + 1;
    for (size_t i = 0; i < sizes_.size(); ++i)
      sizes_[i] = known_size(i);
    if (has_workspace()) add_left(pointers, workspace);
    std::vector<Value> result;
    for (const uint32_t tensor : step_.tensors)
      result.push_back(pointers[tensor]);
    return result;
  }

  void write_entry() {
    const std::vector<Value> pointers = taken_pointers();
    views_.write(pointers, sizes_);
    write_block();
    prepare(program_.body);
    write_all(program_.body);
    begin(kReturn);
    out().number(0);
    out().number(0);
  }

  TypeNumber type_of(ValueId value) {
    return types.tile(views_.element_of(value), program_.values[value].shape);
  }

  /// How many parts an axis has, as an int32.
  Value parts_of(const Axis& axis) {
    if (axis.extent.size < 0) return integer(DType::Int32, axis.parts({}));
    const Value size = sizes_[static_cast<size_t>(axis.extent.size)];
    const Value rounded =
        arithmetic(kAddI, DType::Int64, {kNoWrap}, size, integer(DType::Int64, axis.step - 1));
    const Value parts = arithmetic(kDivI, DType::Int64, {kSigned, kToZero}, rounded,
                                   integer(DType::Int64, axis.step));
    return shortened(parts);
  }
  /// An int64 as an int32.
  Value shortened(Value number) {
    return plain(kTruncI, scalar(DType::Int32), {kMayWrap}, {number});
  }

  /// The number of the block as one part of each block axis.
  void write_block() {
    const uint64_t type = scalar(DType::Int32);
    begin(kGetTileBlockId);
    for (int dimension = 0; dimension < 3; ++dimension)
      out().number(type);
    Value rest = next;
    next += 3;
    std::vector<AxisId> axes(program_.block_axes);
    std::iota(axes.begin(), axes.end(), 0);
    write_places(rest, axes);
  }

  /// A number as one part of each axis, the last of which is the fastest.
  void write_places(Value rest, std::span<const AxisId> axes) {
    for (size_t i = axes.size(); i-- > 0;) {
      if (i == 0) {
        places_[axes[i]] = rest;
        break;
      }
      const Axis& axis = program_.axes[axes[i]];
      if (axis.extent.size < 0 && axis.parts({}) == 1) {
        places_[axes[i]] = integer(DType::Int32, 0);
        continue;
      }
      const Value parts = parts_of(axis);
      places_[axes[i]] = arithmetic(kRemI, DType::Int32, {kSigned}, rest, parts);
      rest = arithmetic(kDivI, DType::Int32, {kSigned, kToZero}, rest, parts);
    }
  }

  /// What is the same for all parts of loops is computed in front of them.
  void prepare(const std::vector<Instruction>& body) {
    for (const Instruction& each : body) {
      if (const auto* loop = std::get_if<For>(&each.what)) prepare(loop->body);
      const auto* window = std::get_if<Window>(&each.what);
      if (window == nullptr) continue;
      windows_.emplace(
          each.results[0],
          PreparedWindow(*this, program_, *window,
                         {views_.source_of(window->parameter, each.results[0]), sizes_, places_}));
    }
  }

  void write_all(const std::vector<Instruction>& body) {
    for (const Instruction& each : body)
      std::visit([&](const auto& what) { write_one(what, each); }, each.what);
  }

  const TileType& result_type(const Instruction& each) const {
    return program_.values[each.results[0]];
  }
  Value operand(const Instruction& each, size_t i) const { return values_[each.operands[i]]; }
  void write_operands(const Instruction& each) {
    for (const ValueId value : each.operands)
      out().number(values_[value]);
  }
  void set_result(const Instruction& each) { values_[each.results[0]] = made(); }

  void write_one(const Constant& number, const Instruction& each) {
    const TileType& type = result_type(each);
    language::HostTensor element{type.element, {1}, {}};
    element.bytes.resize(static_cast<size_t>(size_of(type.element)));
    language::write_element(
        element, 0,
        language::convert(type.element, language::Scalar::of_float(DType::Float64, number.number)));
    uint64_t bits = 0;
    for (size_t i = element.bytes.size(); i-- > 0;)
      bits = bits << 8 | std::to_integer<uint64_t>(element.bytes[i]);
    values_[each.results[0]] = constant(type_of(each.results[0]), bits, size_of(type.element));
  }

  void write_place(const std::vector<AxisId>& at) {
    out().number(at.size());
    for (const AxisId axis : at)
      out().number(places_[axis]);
  }

  void write_one(const Load& load, const Instruction& each) {
    std::vector<Value> place;
    for (const AxisId axis : load.at)
      place.push_back(places_[axis]);
    values_[each.results[0]] =
        load_view(type_of(each.results[0]), views_.at(load.view, each.results[0]), place);
  }

  void write_one(const Window&, const Instruction& each) {
    values_[each.results[0]] = windows_.at(each.results[0]).load(*this, places_);
  }

  void write_one(const Store& store, const Instruction& each) {
    begin(kStoreView);
    out().number(1);
    out().number(types.token());
    out().number(0);  // as above
    out().byte(kWeak);
    out().number(operand(each, 0));
    out().number(views_.at(store.view, each.operands[0]));
    write_place(store.at);
    made();  // the token
  }

  void write_plain(Opcode opcode, const Instruction& each) {
    begin(opcode);
    out().number(type_of(each.results[0]));
    write_operands(each);
    set_result(each);
  }
  /// Attributes of a byte each stand between the type and the operands.
  void write_with(Opcode opcode, std::initializer_list<uint8_t> attributes,
                  const Instruction& each) {
    begin(opcode);
    out().number(type_of(each.results[0]));
    for (const uint8_t attribute : attributes)
      out().byte(attribute);
    write_operands(each);
    set_result(each);
  }
  DType operand_type(const Instruction& each, size_t i) const {
    return program_.values[each.operands[i]].element;
  }
  static uint8_t sign_of(DType type) { return is_unsigned_int(type) ? kUnsigned : kSigned; }

  void write_one(const Mma& mma, const Instruction& each) {
    if (is_float(result_type(each).element)) {
      constexpr uint64_t kIsFast = 1;
      begin(kMmaF);
      out().number(type_of(each.results[0]));
      added(mma.is_fast ? kIsFast : 0);
      write_operands(each);
      return set_result(each);
    }
    write_with(kMmaI, {sign_of(operand_type(each, 0)), sign_of(operand_type(each, 1))}, each);
  }
  void write_one(const Reshape&, const Instruction& each) { write_plain(kReshape, each); }
  void write_one(const Broadcast&, const Instruction& each) { write_plain(kBroadcast, each); }

  void write_one(const Cast&, const Instruction& each) {
    const DType from = operand_type(each, 0);
    if (is_float(from)) return write_with(kFToF, {kToNearest}, each);
    if (is_float(result_type(each).element))
      return write_with(kIToF, {sign_of(from), kToNearest}, each);
    write_with(kExtI, {sign_of(from)}, each);
  }

  void write_one(const Apply& apply, const Instruction& each) {
    std::vector<Value> operands;
    for (size_t i = 0; i < each.operands.size(); ++i)
      operands.push_back(operand(each, i));
    const DType type = operand_type(each, operands.size() - 1);
    values_[each.results[0]] =
        write_function(*this, apply.function, type, type_of(each.results[0]), operands);
  }

  /// Its dimension is gone, and comes back as one of 1.
  void write_one(const Reduce& reduce, const Instruction& each) {
    const TileType& type = result_type(each);
    std::vector<int64_t> left = type.shape;
    left.erase(left.begin() + reduce.dimension);
    const TypeNumber without = types.tile(types.element(type.element), left);
    const Value reduced = write_reduce(*this, reduce.combiner, type.element, without,
                                       operand(each, 0), reduce.dimension);
    values_[each.results[0]] = plain(kReshape, type_of(each.results[0]), {}, {reduced});
  }

  void write_one(const SizeOf& size, const Instruction& each) {
    const Value number = shortened(sizes_[size.size]);
    values_[each.results[0]] = plain(kReshape, type_of(each.results[0]), {}, {number});
  }

  /// Where the part begins, and how far into it an element is.
  void write_one(const Places& places, const Instruction& each) {
    const int64_t step = program_.axes[places.axis].step;
    Value place = arithmetic(kMulI, DType::Int32, {kNoWrap}, places_[places.axis],
                             integer(DType::Int32, step));
    if (const int64_t count = result_type(each).count(); count > 1) {
      const TypeNumber line = types.tile(types.element(DType::Int32), std::array{count});
      const TypeNumber one = types.tile(types.element(DType::Int32), std::array{int64_t{1}});
      const Value spread = plain(kBroadcast, line, {}, {plain(kReshape, one, {}, {place})});
      const Value within = plain(kIota, line, {}, {});
      place = plain(kAddI, line, {kNoWrap}, {spread, within});
    }
    values_[each.results[0]] = plain(kReshape, type_of(each.results[0]), {}, {place});
  }

  void write_one(const For& loop, const Instruction& each) {
    Value end = parts_of(program_.axes[loop.axes[0]]);
    for (const AxisId axis : std::span(loop.axes).subspan(1))
      end = arithmetic(kMulI, DType::Int32, {kNoWrap}, end, parts_of(program_.axes[axis]));
    Value first = integer(DType::Int32, 0);
    if (loop.from)
      first = arithmetic(kMaxI, DType::Int32, {kSigned}, part_at(*loop.from, loop), first);
    if (loop.until)
      end = arithmetic(kMinI, DType::Int32, {kSigned}, part_at(*loop.until, loop), end);
    const Value step = integer(DType::Int32, 1);
    constexpr uint64_t kSignedBounds = 0;
    begin(kFor);
    out().number(each.results.size());
    for (const ValueId result : each.results)
      out().number(type_of(result));
    added(kSignedBounds);
    out().number(3 + each.operands.size());
    for (const Value bound : {first, end, step})
      out().number(bound);
    write_operands(each);
    std::vector<TypeNumber> taken = {scalar(DType::Int32)};
    for (const ValueId carried : loop.carried)
      taken.push_back(type_of(carried));
    region(taken, [&] { write_body(loop); });
    for (const ValueId result : each.results)
      values_[result] = made();
  }

  /// The first part that begins where a value says, or after it.
  Value part_at(ValueId value, const For& loop) {
    const int64_t step = program_.axes[loop.axes[0]].step;
    const Value at = plain(kReshape, scalar(DType::Int32), {}, {values_[value]});
    const Value rounded =
        arithmetic(kAddI, DType::Int32, {kNoWrap}, at, integer(DType::Int32, step - 1));
    return arithmetic(kDivI, DType::Int32, {kSigned, kToZero}, rounded,
                      integer(DType::Int32, step));
  }

  void write_body(const For& loop) {
    Value taken = next - loop.carried.size() - 1;
    const Value number = taken++;
    for (const ValueId carried : loop.carried)
      values_[carried] = taken++;
    write_places(number, loop.axes);
    write_all(loop.body);
    begin(kContinue);
    out().number(0);
    out().number(loop.yields.size());
    for (const ValueId value : loop.yields)
      out().number(values_[value]);
  }

  ModuleTables& module_;
  const Sequence& sequence_;
  const Sequence::Step& step_;
  const Program& program_;
  BytecodeViews views_;
  std::vector<Value> sizes_;
  std::map<ValueId, PreparedWindow> windows_;  // by what they make
  std::vector<Value> values_;                  // by ValueId
  std::vector<Value> places_;                  // by AxisId
};

bool has_fast_sums(const std::vector<Instruction>& body) {
  return std::ranges::any_of(body, [](const Instruction& each) {
    if (const auto* loop = std::get_if<For>(&each.what)) return has_fast_sums(loop->body);
    const auto* mma = std::get_if<Mma>(&each.what);
    return mma != nullptr && mma->is_fast;
  });
}

std::string module_text(const ModuleTables& module, const Bytes& functions) {
  Bytes constants;
  module.constants.write(constants, 8);
  Bytes types;
  module.types.table().write(types, 4);
  Bytes strings;
  module.strings.write(strings, 4);
  Bytes out;
  out.append(std::string_view("\x7fTileIR\0", 8));
  out.byte(13);
  out.byte(static_cast<uint8_t>(module.version));
  out.fixed(0, 2);
  const auto write = [&](Section section, const Bytes& content, uint8_t alignment) {
    constexpr uint8_t kIsAligned = 0x80;
    out.byte(section | kIsAligned);
    out.number(content.size());
    out.number(alignment);
    out.pad_to(alignment);
    out.append(content.text());
  };
  write(kFunctions, functions, 8);
  write(kConstants, constants, 8);
  write(kTypes, types, 4);
  write(kStrings, strings, 4);
  out.byte(kEnd);
  return out.text();
}

}  // namespace

std::string entry_name(size_t number) { return fmt::format("kiln_tile_{}", number); }

std::string bytecode(const Sequence& sequence, const BytecodeOptions& options) {
  std::span<const Sequence::Step> steps = sequence.steps;
  if (options.step) steps = steps.subspan(*options.step, 1);
  const bool is_fast = std::ranges::any_of(
      steps, [](const Sequence::Step& step) { return has_fast_sums(step.program.body); });
  ModuleTables module(is_fast ? Version::WithFastSums : Version::First);
  Bytes functions;
  functions.number(steps.size());
  BytecodeOptions of_entry = options;
  for (const Sequence::Step& step : steps) {
    // What is left for later is no product, which takes how many warps it may.
    const bool is_last = &step == &sequence.steps.back();
    of_entry.warps = is_last ? options.warps : 0;
    EntryWriter(module, sequence, step).run(functions, entry_name(of_entry.number++), of_entry);
  }
  return module_text(module, functions);
}

}  // namespace kiln::tile

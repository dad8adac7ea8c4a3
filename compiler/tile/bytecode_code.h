#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "compiler/tile/bytecode_tables.h"
#include "runtime/core/dtype.h"

namespace kiln::tile {

enum Opcode : uint64_t {
  kAddF = 2,
  kAddI = 3,
  kAndI = 4,
  kAssume = 6,
  kBroadcast = 11,
  kCmpF = 14,
  kCmpI = 15,
  kConstant = 16,
  kContinue = 17,
  kDivF = 20,
  kDivI = 21,
  kExp = 23,
  kExp2 = 24,
  kExtI = 37,
  kFma = 40,
  kFor = 41,
  kFToF = 42,
  kGetTileBlockId = 48,
  kIntToPtr = 51,
  kIota = 58,
  kIToF = 59,
  kLoadPointers = 61,
  kLoadView = 62,
  kLog = 63,
  kMakePartitionView = 66,
  kMakeTensorView = 67,
  kMaxF = 69,
  kMaxI = 70,
  kMinF = 71,
  kMinI = 72,
  kMmaF = 73,
  kMmaI = 74,
  kMulF = 76,
  kMulI = 78,
  kNegF = 79,
  kNegI = 80,
  kOffset = 81,
  kOrI = 82,
  kPtrToInt = 86,
  kPtrToPtr = 87,
  kReduce = 88,
  kRemI = 90,
  kReshape = 91,
  kReturn = 92,
  kRsqrt = 93,
  kSelect = 95,
  kSqrt = 100,
  kStoreView = 102,
  kSubF = 103,
  kSubI = 104,
  kTanH = 106,
  kTruncI = 107,
  kXOrI = 108,
  kYield = 109,
};

// Attributes that say their kind begin with it.
constexpr uint8_t kIntegerTag = 0x01;
constexpr uint8_t kFloatTag = 0x02;
constexpr uint8_t kDivisibleTag = 0x08;
constexpr uint8_t kDictionaryTag = 0x0a;
constexpr uint8_t kHintsTag = 0x0b;
constexpr uint8_t kBoundedTag = 0x0c;

// Attributes of instructions.
constexpr uint8_t kToNearest = 0;
constexpr uint8_t kToZero = 1;
constexpr uint8_t kInFull = 5;  // as precise as the function is specified
constexpr uint8_t kUnsigned = 0;
constexpr uint8_t kSigned = 1;
constexpr uint8_t kMayWrap = 0;
constexpr uint8_t kNoWrap = 3;
constexpr uint8_t kIsEqual = 0;
constexpr uint8_t kIsLess = 2;
constexpr uint8_t kWeak = 0;  // order of memory: that of an ordinary access
constexpr uint64_t kWithNan = 1;

using Value = uint64_t;
using TypeNumber = uint64_t;

/// Instructions of one block, and how many.
struct Code {
  Bytes bytes;
  uint64_t count = 0;
};

/// What entries of a module name.
struct ModuleTables {
  explicit ModuleTables(Version of) : version(of), types(of) {}

  const Version version;
  TypeTable types;
  Table constants;
  Table strings;
};

/// Writes instructions one after the other, with the types and constants that they name. Values are
/// numbered as they are made.
class CodeWriter {
 public:
  explicit CodeWriter(ModuleTables& module)
      : version(module.version), types(module.types), constants(module.constants) {}

  const Version version;
  TypeTable& types;
  Table& constants;
  Code code;
  Value next = 0;

  Bytes& out() { return code.bytes; }
  void begin(Opcode opcode) {
    out().number(opcode);
    ++code.count;
  }
  /// What 13.2 or 13.3 added to an instruction, by a number for what is as it was.
  void added(uint64_t number) {
    if (version >= Version::WithFastSums) out().number(number);
  }
  /// The value that the instruction makes whose bytes are complete.
  Value made() { return next++; }

  TypeNumber scalar(DType type) { return types.tile(types.element(type), {}); }

  /// All elements are these bits.
  Value constant(TypeNumber type, uint64_t bits, int width) {
    Bytes entry;
    entry.number(static_cast<uint64_t>(width));
    entry.fixed(bits, width);
    begin(kConstant);
    out().number(type);
    out().number(constants[entry.text()]);
    return made();
  }
  Value integer(DType type, int64_t value) {
    return constant(scalar(type), static_cast<uint64_t>(value), size_of(type));
  }

  /// An instruction whose attributes are a byte each.
  Value plain(Opcode opcode, TypeNumber type, std::initializer_list<uint8_t> attributes,
              std::initializer_list<Value> operands) {
    begin(opcode);
    out().number(type);
    for (const uint8_t attribute : attributes)
      out().byte(attribute);
    for (const Value operand : operands)
      out().number(operand);
    return made();
  }
  Value arithmetic(Opcode opcode, DType type, std::initializer_list<uint8_t> attributes, Value a,
                   Value b) {
    return plain(opcode, scalar(type), attributes, {a, b});
  }

  /// The value, which the assembler may take to be a multiple of a number.
  Value multiple(TypeNumber type, int64_t of, Value value) {
    begin(kAssume);
    out().number(type);
    out().byte(kDivisibleTag);
    out().number(static_cast<uint64_t>(of));
    out().byte(0);  // all of it, along no dimension
    out().number(value);
    return made();
  }

  /// The value, which the assembler may take to be from 0 to a number.
  Value bounded(TypeNumber type, int64_t most, Value value) {
    constexpr uint8_t kHasBoth = 3;
    begin(kAssume);
    out().number(type);
    out().byte(kBoundedTag);
    out().byte(kHasBoth);
    out().number(0);
    out().number(static_cast<uint64_t>(most) << 1);  // as a signed number is written, its sign last
    out().number(value);
    return made();
  }

  void write_values(std::span<const Value> values) {
    out().number(values.size());
    for (const Value value : values)
      out().number(value);
  }

  /// The one region of an instruction: a block that takes values of these types, the last of which
  /// are numbered when `body` writes it. What it makes is forgotten at its end.
  template <typename Body>
  void region(std::span<const TypeNumber> taken, const Body& body) {
    out().number(1);  // region
    out().byte(1);    // block
    write_values(taken);
    const Value outside = next;
    next += taken.size();
    Code around;
    std::swap(code, around);
    body();
    std::swap(code, around);
    out().number(around.count);
    out().append(around.bytes.text());
    next = outside;
  }

  /// An extent or a stride that is kOpen is the next of the operands.
  Value tensor_view(TypeNumber tensor, Value pointer, std::span<const Value> open_extents,
                    std::span<const Value> open_strides) {
    begin(kMakeTensorView);
    out().number(1);
    out().number(tensor);
    out().number(pointer);
    write_values(open_extents);
    write_values(open_strides);
    return made();
  }
  /// -> the tile at this place of a view.
  Value load_view(TypeNumber tile, Value view, std::span<const Value> place) {
    begin(kLoadView);
    out().number(2);
    out().number(tile);
    out().number(types.token());
    out().number(0);  // no scope, no hints, no token
    out().byte(kWeak);
    out().number(view);
    write_values(place);
    return made_with_token();
  }
  /// -> the elements at pointers; of the operands the others are, if any, where to load one, and
  /// what is there else.
  Value load_pointers(TypeNumber tile, std::span<const Value> operands) {
    constexpr uint64_t kHasCondition = 4 | 8;
    begin(kLoadPointers);
    out().number(tile);
    out().number(types.token());
    out().number(operands.size() > 1 ? kHasCondition : 0);  // no scope, no hints, no token
    out().byte(kWeak);
    for (const Value operand : operands)
      out().number(operand);
    return made_with_token();
  }

 private:
  Value made_with_token() {
    next += 2;
    return next - 2;
  }
};

}  // namespace kiln::tile

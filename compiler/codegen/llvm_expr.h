#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "compiler/codegen/llvm_known.h"
#include "compiler/codegen/llvm_math.h"
#include "compiler/ir/stmt.h"

namespace kiln::codegen {

/// Where a buffer lies while a function runs.
struct BufferPlace {
  llvm::Value* pointer = nullptr;
  llvm::MDNode* tag = nullptr;  // of its own type for alias analysis: buffers never share memory
  llvm::Value* is_large = nullptr;  // i1: vectors get non-temporal stores; null for never
};

/// Which accesses of single lanes, sums of products and arithmetic the CPU has instructions for.
/// LLVM makes a branch a lane of the other accesses.
struct LaneAccess {
  bool gathers = false;        // and scatters
  bool masks_words = false;    // masked loads and stores of elements of 4 and 8 bytes
  bool masks_bytes = false;    // of smaller ones
  int masked_bytes = 32;       // that one masked load or store moves
  int dots_bytes = 0;          // most lanes of four products of bytes into an int32
  int dots_words = 0;          // of two products of int16
  int dots_halves = 0;         // most lanes of two products of bfloat16 into a float32
  bool adds_products = false;  // a product and a sum, rounded once
  Arithmetic arithmetic = {};
};

/// Emits expressions at the builder's place.
///
/// An expression used twice in one statement is computed once. Index arithmetic is known not to
/// overflow (sizes are bounded by bind_arguments); arithmetic on data wraps.
class ExprEmitter {
 public:
  ExprEmitter(llvm::IRBuilderBase& builder, LaneAccess lane_access)
      : b_(builder), math_(builder, lane_access.arithmetic), lane_access_(lane_access) {}

  /// What a variable is from here on; natural: never negative.
  void bind(const ir::VarRef& var, llvm::Value* value, bool is_natural);
  void bind(const ir::BufferRef& buffer, BufferPlace place);
  llvm::Value* value_of(const ir::VarRef& var) const;
  const BufferPlace& place_of(const ir::BufferRef& buffer) const;

  /// To be called between statements: what was computed may no longer hold, or be reached.
  void forget() { memo_.assign(1, {}); }

  /// The expression as data, whose arithmetic wraps, or as index arithmetic, which never overflows.
  llvm::Value* value(const ir::Expr& expr) { return emit(expr, Use::Data); }
  llvm::Value* index(const ir::Expr& expr) { return emit(expr, Use::Index); }
  void store(const ir::Store& node);
  /// Statements that each store every n-th of n times as many neighbours, from the first one of
  /// them on: how many there are at the beginning of the list, stored at once. 0 where none are.
  size_t store_together(std::span<const ir::Stmt> statements);
  void prefetch(const ir::Prefetch& node);
  /// Of an element; the index is in elements.
  llvm::Value* address_of(const ir::BufferRef& buffer, const ir::Expr& index);
  /// Orders the non-temporal stores before all that comes later, where there were any.
  void fence();

  llvm::IRBuilderBase& builder() { return b_; }
  /// For a KnownValues::Region around each body of a loop or branch.
  KnownValues& known() { return known_; }

 private:
  enum class Use : uint8_t { Data, Index };
  /// base + constant: places a constant apart share their base.
  struct Place {
    llvm::Value* base;
    int64_t constant;
  };
  /// first, first + stride, ..: what contiguous loads and stores are recognised by.
  struct Progression {
    Place first;  // lane
    int64_t stride;
  };
  struct MemoKey {
    ir::Expr expr;
    Use use;
    bool operator==(const MemoKey&) const = default;
  };
  struct MemoHash {
    size_t operator()(const MemoKey& key) const {
      return std::hash<ir::Expr>()(key.expr) * 2 + static_cast<size_t>(key.use);
    }
  };
  using Memo = std::unordered_map<MemoKey, llvm::Value*, MemoHash>;

  llvm::Value* emit(const ir::Expr& expr, Use use);
  llvm::Value* compute(const ir::Expr& expr, Use use);
  llvm::Value* binary(const ir::Binary& node, const ir::Expr& expr, Use use);
  llvm::Value* add_product(const ir::Binary& node, Use use);
  llvm::Value* linear(language::Operator op, llvm::Value* x, llvm::Value* y);
  llvm::Value* splat(llvm::Value* value, int lanes);
  llvm::Value* call(const ir::Call& node, Use use);
  llvm::Value* choose(const ir::Call& node, Use use);
  llvm::Value* choose_lanes(const ir::Call& node, Use use);
  llvm::Value* load(const ir::Load& node);
  llvm::Value* load_scalar(llvm::Value* address, const ir::Load& node, llvm::Value* mask);
  llvm::Value* load_row(const BufferPlace& place, const Progression& row, const ir::Load& node,
                        llvm::Value* mask);
  llvm::Value* masked_load(const BufferPlace& place, DType type, llvm::Value* address,
                           llvm::Value* mask);
  void masked_store(const BufferPlace& place, DType type, llvm::Value* value, llvm::Value* address,
                    llvm::Value* mask);
  /// The parts of a mask that a register of such elements each has room for, by their first lanes.
  void for_each_register(DType type, llvm::Value* mask,
                         const std::function<void(int, llvm::Value*)>& visit);
  llvm::Value* load_at(const ir::BufferRef& buffer, llvm::Type* type, llvm::Value* address);
  static Place lowest(const Progression& row, int lanes);
  llvm::Value* ramp(const ir::Ramp& node);
  llvm::Value* vector_reduce(const ir::VectorReduce& node);
  llvm::Value* dot(const ir::Dot& node);
  llvm::Value* dot_by_instruction(const ir::Dot& node, int widest);
  llvm::Value* factor_of_dot(const ir::Expr& factor, bool is_words);
  llvm::Value* word_in_lanes(const ir::Expr& group, int lanes, bool is_words);
  llvm::Value* dot_of_bytes(const ir::Dot& node, llvm::Value* sum, llvm::Value* x, llvm::Value* y);
  llvm::Value* dot_of_halves(llvm::Value* sum, llvm::Value* x, llvm::Value* y);

  /// The lanes of an index, where they are known to be equally spaced by a constant.
  std::optional<Progression> progression(const ir::Expr& index);
  /// Sizes, loop variables and arithmetic on them: nothing read from memory.
  bool is_plain_index(const ir::Expr& expr);
  /// Never negative, by the signs of its parts alone.
  bool is_natural(const ir::Expr& expr) const;
  bool reads_memory(const ir::Expr& expr);

  /// Whole vectors, shuffled together; of lanes that do not run nothing is read.
  llvm::Value* load_apart(const BufferPlace& place, const Place& first, int64_t apart,
                          const ir::Load& node, llvm::Value* mask);
  /// Lane by lane, without branches: a lane that does not run uses a place of its own on the stack.
  llvm::Value* load_lanes(const BufferPlace& place, const ir::Load& node, llvm::Value* mask);
  void store_lanes(const BufferPlace& place, const ir::Store& node, llvm::Value* value,
                   llvm::Value* mask);
  void store_row(const BufferPlace& place, DType type, llvm::Value* value, llvm::Value* address);
  std::vector<llvm::Value*> lane_addresses(const BufferPlace& place, DType type,
                                           const ir::Expr& index, llvm::Value* mask,
                                           llvm::Value* spare);
  bool has_masks(DType type) const;
  llvm::Value* spare_place(bool is_zero);

  Place place_in(const ir::Expr& index);
  llvm::Value* element_address(const BufferPlace& place, DType type, const Place& element);
  llvm::Value* lanes_addresses(const BufferPlace& place, DType type, llvm::Value* indices);
  llvm::Value* addresses_at(const BufferPlace& place, DType type, const ir::Expr& index,
                            const std::optional<Progression>& row);
  llvm::Value* from_memory(llvm::Value* value, DType type);
  llvm::Value* to_memory(llvm::Value* value, DType type);
  llvm::Value* active_mask(const ir::Expr& predicate, int lanes);
  llvm::Value* any_lane(llvm::Value* mask);
  template <typename Body>
  llvm::Value* when(llvm::Value* condition, llvm::Type* type, Body&& body);
  template <typename T>
  T* tagged(T* instruction, const BufferPlace& place);

  llvm::IRBuilderBase& b_;
  MathEmitter math_;
  const LaneAccess lane_access_;
  llvm::Value* zero_place_ = nullptr;   // on the stack, for lanes that load nothing
  llvm::Value* spare_place_ = nullptr;  // and for those that store nothing
  std::unordered_map<ir::VarRef, llvm::Value*> vars_;
  std::unordered_set<ir::VarRef> naturals_;  // never negative
  std::unordered_map<ir::BufferRef, BufferPlace> places_;
  KnownValues known_;
  std::vector<Memo> memo_{1};  // one more for each conditional part entered
  std::unordered_map<ir::Expr, bool> plain_;
  std::unordered_map<ir::Expr, bool> reads_;
  bool has_nontemporal_stores_ = false;  // there was a store that may be non-temporal
  llvm::Value* mask_ = nullptr;          // lanes that run, inside an IfThenElse of lanes
};

}  // namespace kiln::codegen

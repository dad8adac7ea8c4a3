#pragma once

// What interpret() knows at a place of the loops: the elements of buffers, what names stand for,
// and the values of expressions. Of interpret.cc alone; apart from it for its length.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "compiler/ir/print.h"
#include "compiler/ir/races.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/swizzle.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"

namespace kiln::ir {

using language::Scalar;

template <typename... Args>
[[noreturn]] void breach(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Internal, "INTERPRET", "internal error: {}",
       fmt::format(format, std::forward<Args>(args)...));
}

/// a op b as machines have it: past the ends of int64 it comes out at the other one.
inline int64_t wrapping(int64_t a, int64_t b, char op) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(op == '+' ? x + y : op == '-' ? x - y : x * y);
}

/// The elements of one buffer, and which of them were written.
struct Storage {
  HostTensor* elements = nullptr;
  std::unique_ptr<HostTensor> owned;  // of an allocation
  int64_t span = 0;                   // elements, those between rows that are spread out too
  std::vector<bool> written;
  AccessHistory history;  // of threads, where there are any
};

/// The launches of a kernel for a GPU, and how far they have come.
struct Launches {
  std::unordered_set<const StmtNode*> statements;
  AccessHistory::Moment now;
};

/// A map of few nodes, most of which were added last: searched from the back.
template <typename T>
class NodeMap {
 public:
  T* find(const Node* node) {
    for (size_t i = entries_.size(); i-- > 0;) {
      if (entries_[i].first == node) return &entries_[i].second;
    }
    return nullptr;
  }
  T& operator[](const Node* node) {
    T* found = find(node);
    return found != nullptr ? *found : entries_.emplace_back(node, T()).second;
  }

 private:
  std::vector<std::pair<const Node*, T>> entries_;
};

/// What a thread has stored in the background.
struct LateStore {
  BufferRef buffer;
  int64_t position = 0;
  Scalar value;
};

/// What names stand for at one place: of the kernel, or of one thread of a block. Copies share
/// storage.
struct Bindings {
  NodeMap<int64_t> vars;
  NodeMap<std::shared_ptr<Storage>> buffers;
  GridThread thread;
  std::vector<std::vector<LateStore>> groups;  // stored in the background, not awaited
  bool is_background = false;
  Launches* launches = nullptr;  // null where nothing runs as threads
};

/// Evaluates expressions one lane at a time.
class Evaluate {
 public:
  explicit Evaluate(Bindings& scope) : scope_(scope) {}

  int64_t index(const Expr& expr, int lane = 0) {
    // Most of the work is indices, and comparisons of these.
    switch (expr->kind) {
      case NodeKind::IntImm: return as<IntImm>(expr)->value;
      case NodeKind::Var: return variable(*as<Var>(expr));
      case NodeKind::Binary: {
        const Binary& node = *as<Binary>(expr);
        if (node.a->type.element != DType::Int64) break;
        const int64_t a = index(node.a, lane);
        const int64_t b = index(node.b, lane);
        switch (node.op) {
          case Operator::Add: return wrapping(a, b, '+');
          case Operator::Sub: return wrapping(a, b, '-');
          case Operator::Mul: return wrapping(a, b, '*');
          case Operator::Min: return std::min(a, b);
          case Operator::Max: return std::max(a, b);
          case Operator::Less: return a < b ? 1 : 0;
          case Operator::LessEqual: return a <= b ? 1 : 0;
          case Operator::Greater: return a > b ? 1 : 0;
          case Operator::GreaterEqual: return a >= b ? 1 : 0;
          case Operator::Equal: return a == b ? 1 : 0;
          case Operator::NotEqual: return a != b ? 1 : 0;
          default: {
            const Scalar operands[] = {{DType::Int64, a, 0}, {DType::Int64, b, 0}};
            return language::apply_operator(node.op, operands).integer;
          }
        }
      }
      default: break;
    }
    return (*this)(expr, lane).integer;
  }
  bool condition(const Expr& expr, int lane = 0) { return !expr || index(expr, lane) != 0; }

  Scalar operator()(const Expr& expr, int lane = 0) {
    switch (expr->kind) {
      case NodeKind::IntImm: return Scalar::of_int(expr->type.element, as<IntImm>(expr)->value);
      case NodeKind::FloatImm:
        return Scalar::of_float(expr->type.element, as<FloatImm>(expr)->value);
      case NodeKind::Var: return Scalar::of_int(DType::Int64, variable(*as<Var>(expr)));
      case NodeKind::Binary: {
        const Binary& node = *as<Binary>(expr);
        // Of indices its value is an index, or whether a comparison of such holds.
        if (node.a->type.element == DType::Int64) return {expr->type.element, index(expr, lane), 0};
        const Scalar operands[] = {(*this)(node.a, lane), (*this)(node.b, lane)};
        return language::apply_operator(node.op, operands);
      }
      case NodeKind::Call: return call(*as<Call>(expr), lane);
      case NodeKind::Cast:
        return language::convert(expr->type.element, (*this)(as<Cast>(expr)->value, lane));
      case NodeKind::Load: return load(*as<Load>(expr), lane);
      case NodeKind::Ramp: {
        const Ramp& ramp = *as<Ramp>(expr);
        const int64_t offset = wrapping(lane, index(ramp.stride), '*');
        return Scalar::of_int(DType::Int64, wrapping(index(ramp.base), offset, '+'));
      }
      case NodeKind::Broadcast: return (*this)(as<Broadcast>(expr)->value);
      case NodeKind::VectorReduce: return reduce(*as<VectorReduce>(expr));
      case NodeKind::Dot: return dot(*as<Dot>(expr), lane);
      default: breach("{} cannot be evaluated", expr);
    }
  }

  /// Where an access goes. Every index is checked.
  int64_t position(const BufferRef& buffer, const std::vector<Expr>& indices, int lane) {
    return position(buffer, storage(buffer), indices, lane);
  }
  int64_t position(const BufferRef& buffer, const Storage& memory, const std::vector<Expr>& indices,
                   int lane) {
    const std::vector<int64_t>& shape = memory.elements->shape;
    const bool is_flat = indices.size() != shape.size();  // after flatten_storage
    KILN_CHECK(!is_flat || indices.size() == 1);
    const int64_t count = is_flat ? memory.span : 0;
    int64_t position = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t value = index(indices[d], indices[d]->type.lanes > 1 ? lane : 0);
      const int64_t extent = is_flat ? count : shape[d];
      if (value < 0 || value >= extent) fail_outside(buffer, indices, lane);
      position = position * extent + value;
    }
    if (!is_flat || buffer->swizzle == 0) return position;
    const int64_t place = place_in_memory(*buffer, position);
    if (place >= count) fail_outside(buffer, indices, lane);
    return place;
  }

  /// Whether threads of a GPU may meet there.
  bool is_shared(const BufferRef& buffer) const {
    return scope_.launches != nullptr && buffer->scope != Scope::Local;
  }

  Storage& storage(const BufferRef& buffer) {
    const std::shared_ptr<Storage>* found = scope_.buffers.find(buffer.get());
    if (found == nullptr) breach("buffer {} has no memory", buffer->name);
    return **found;
  }

 private:
  [[noreturn]] void fail_outside(const BufferRef& buffer, const std::vector<Expr>& indices,
                                 int lane) {
    std::vector<int64_t> values;
    values.reserve(indices.size());
    for (const Expr& expr : indices)
      values.push_back(index(expr, expr->type.lanes > 1 ? lane : 0));
    breach("{}[{}] is outside its shape ({})", buffer->name, fmt::join(values, ", "),
           fmt::join(storage(buffer).elements->shape, ", "));
  }

  int64_t variable(const Var& var) {
    const int64_t* found = scope_.vars.find(&var);
    if (found == nullptr) breach("variable {} has no value", var.name);
    return *found;
  }

  Scalar call(const Call& node, int lane) {
    if (node.op == Operator::IfThenElse) {
      const int condition_lane = node.args[0]->type.lanes > 1 ? lane : 0;
      return (*this)(node.args[condition(node.args[0], condition_lane) ? 1 : 2], lane);
    }
    std::vector<Scalar> operands;
    for (const Expr& arg : node.args)
      operands.push_back((*this)(arg, lane));
    return language::apply_operator(node.op, operands);
  }

  Scalar load(const Load& node, int lane) {
    if (!condition(node.predicate, lane)) {
      return language::convert(node.type.element, Scalar::of_int(DType::Int64, 0));
    }
    Storage& memory = storage(node.buffer);
    const int64_t at = position(node.buffer, memory, node.indices, lane);
    if (!memory.written[static_cast<size_t>(at)]) {
      breach("element {} of {} is read before it is written", at, node.buffer->name);
    }
    if (is_shared(node.buffer) && !memory.history.read(at, scope_.thread, scope_.launches->now)) {
      breach("element {} of {} is read by a GPU thread that did not wait for the store to it", at,
             node.buffer->name);
    }
    return language::read_element(*memory.elements, at);
  }

  Scalar reduce(const VectorReduce& node) {
    Scalar result = (*this)(node.start);
    const Operator op = language::row_of(node.combiner).op;
    for (int lane = 0; lane < node.vector->type.lanes; ++lane) {
      const Scalar operands[] = {result, (*this)(node.vector, lane)};
      result = language::apply_operator(op, operands);
    }
    return result;
  }

  Scalar dot(const Dot& node, int lane) {
    const int group = node.group();
    const bool shares_a = node.a->type.lanes == group;
    Scalar result = (*this)(node.start, lane);
    for (int i = 0; i < group; ++i) {
      const int place = lane * group + i;
      const DType type = node.type.element;
      const Scalar factors[] = {language::convert(type, (*this)(node.a, shares_a ? i : place)),
                                language::convert(type, (*this)(node.b, place))};
      const Scalar terms[] = {result, language::apply_operator(Operator::Mul, factors)};
      result = language::apply_operator(Operator::Add, terms);
    }
    return result;
  }

  Bindings& scope_;
};

}  // namespace kiln::ir

// The reference semantics of lowered loops, one scalar at a time: what passes and code generators
// are tested against. It looks for mistakes that a fast run would hide: indices outside a shape,
// elements read before they are written, barriers that not all threads reach or that are missing
// (races.cc), and parallel loops that rely on their order, which is why those run backwards.
#include "compiler/ir/interpret.h"

#include <array>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <fmt/ranges.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/ir/races.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"
#include "runtime/core/size_expr.h"

namespace kiln::ir {
namespace {

using language::Scalar;

template <typename... Args>
[[noreturn]] void breach(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Internal, "INTERPRET", "internal error: {}",
       fmt::format(format, std::forward<Args>(args)...));
}

/// a op b as machines have it: past the ends of int64 it comes out at the other one.
int64_t wrapping(int64_t a, int64_t b, char op) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(op == '+' ? x + y : x * y);
}

/// How many elements; of an argument without any, whose other extents may be as large as they like,
/// a stride that is never used.
int64_t product_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape)
    count = wrapping(count, extent, '*');
  return count;
}

/// The same of an allocation, checked: nobody has yet held it in memory.
int64_t elements_of(const Buffer& buffer, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (!__builtin_mul_overflow(count, extent, &count) && count <= kLargestSize) continue;
    fail(ErrorKind::ResourceExhausted, "DEVICE_MEMORY",
         "{} would have more than {} elements; compute it inside the loops that read it "
         "(compute_at, compute_inline), or call the kernel with smaller tensors",
         buffer.name, kLargestSize);
  }
  return count;
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

/// What names stand for at one place: of the kernel, or of one thread of a block. Copies share
/// storage.
struct Bindings {
  NodeMap<int64_t> vars;
  NodeMap<std::shared_ptr<Storage>> buffers;
  GridThread thread;
  Launches* launches = nullptr;  // null where nothing runs as threads
};

/// Evaluates expressions one lane at a time.
class Evaluate {
 public:
  explicit Evaluate(Bindings& scope) : scope_(scope) {}

  int64_t index(const Expr& expr, int lane = 0) {
    // Most of the work is indices, and most of those are sums and products.
    if (const IntImm* imm = as<IntImm>(expr)) return imm->value;
    if (const Var* var = as<Var>(expr)) return variable(*var);
    if (const Binary* node = as<Binary>(expr)) {
      switch (node->op) {
        case Operator::Add: return wrapping(index(node->a, lane), index(node->b, lane), '+');
        case Operator::Mul: return wrapping(index(node->a, lane), index(node->b, lane), '*');
        default: break;
      }
    }
    return (*this)(expr, lane).integer;
  }
  bool condition(const Expr& expr, int lane = 0) {
    return !expr || (*this)(expr, lane).integer != 0;
  }

  Scalar operator()(const Expr& expr, int lane = 0) {
    switch (expr->kind) {
      case NodeKind::IntImm: return Scalar::of_int(expr->type.element, as<IntImm>(expr)->value);
      case NodeKind::FloatImm:
        return Scalar::of_float(expr->type.element, as<FloatImm>(expr)->value);
      case NodeKind::Var: return Scalar::of_int(DType::Int64, variable(*as<Var>(expr)));
      case NodeKind::Binary: {
        const Binary& node = *as<Binary>(expr);
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
    const std::vector<int64_t>& shape = storage(buffer).elements->shape;
    const bool is_flat = indices.size() != shape.size();  // after flatten_storage
    KILN_CHECK(!is_flat || indices.size() == 1);
    const int64_t count = is_flat ? storage(buffer).span : 0;
    int64_t position = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t value = index(indices[d], indices[d]->type.lanes > 1 ? lane : 0);
      const int64_t extent = is_flat ? count : shape[d];
      if (value < 0 || value >= extent) fail_outside(buffer, indices, lane);
      position = position * extent + value;
    }
    return position;
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
    const int64_t at = position(node.buffer, node.indices, lane);
    const Storage& memory = storage(node.buffer);
    if (!memory.written[static_cast<size_t>(at)]) {
      breach("element {} of {} is read before it is written", at, node.buffer->name);
    }
    if (is_shared(node.buffer) &&
        !storage(node.buffer).history.read(at, scope_.thread, scope_.launches->now)) {
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

/// Unwinds the loops of a run that is cancelled; never leaves interpret().
struct Cancelled {};

std::vector<int64_t> indices_of(int64_t position, const std::vector<int64_t>& shape) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d])
    indices[d] = position % shape[d];
  return indices;
}

class Interpreter {
 public:
  Interpreter(Bindings& scope, InterpretWatch& watch)
      : scope_(scope), watch_(watch), evaluate_(scope) {}

  void run(const Stmt& stmt) {
    Launches* launches = scope_.launches;
    if (launches != nullptr && launches->statements.contains(stmt.get())) ++launches->now.launch;
    switch (stmt->kind) {
      case NodeKind::Block:
        for (const Stmt& inner : as<Block>(stmt)->body)
          run(inner);
        return;
      case NodeKind::For: return run_loop(*as<For>(stmt));
      case NodeKind::If: {
        const If& node = *as<If>(stmt);
        if (evaluate_.condition(node.condition)) return run(node.then_body);
        if (node.else_body) run(node.else_body);
        return;
      }
      case NodeKind::Store: return store(*as<Store>(stmt));
      case NodeKind::Atomic: return change(*as<Atomic>(stmt));
      case NodeKind::Allocate: {
        allocate(as<Allocate>(stmt)->buffer);
        return run(as<Allocate>(stmt)->body);
      }
      case NodeKind::Check: return check(*as<Check>(stmt));
      case NodeKind::Barrier: return;  // of a block whose threads are not being run
      case NodeKind::Shuffle: breach("a shuffle stands outside the loops over threads");
      case NodeKind::Tensorize: return run(as<Tensorize>(stmt)->body);
      case NodeKind::Prefetch: {
        const Prefetch& prefetch = *as<Prefetch>(stmt);
        evaluate_.position(prefetch.buffer, prefetch.indices, 0);  // it must be an element
        return;
      }
      default: breach("a statement that cannot be run");
    }
  }

  void allocate(const BufferRef& buffer) {
    auto storage = std::make_shared<Storage>();
    storage->owned = std::make_unique<HostTensor>();
    storage->elements = storage->owned.get();
    storage->elements->type = buffer->type;
    for (const Expr& extent : buffer->shape) {
      // A stage over n - 2 rows has none where n is 1, as the loops over them do nothing.
      storage->elements->shape.push_back(std::max<int64_t>(evaluate_.index(extent), 0));
    }
    std::vector<int64_t> held = storage->elements->shape;
    if (!buffer->strides.empty()) held = {held[0], evaluate_.index(buffer->strides[0])};
    storage->span = elements_of(*buffer, held);
    storage->elements->bytes.resize(static_cast<size_t>(storage->span * size_of(buffer->type)));
    storage->written.assign(static_cast<size_t>(storage->span), false);
    scope_.buffers[buffer.get()] = std::move(storage);
  }

 private:
  void run_loop(const For& loop) {
    const int64_t extent = evaluate_.index(loop.extent);
    if (is_thread_axis(loop.thread) && waits_in(loop.body).at_all()) {
      std::vector<Bindings> threads = threads_of({scope_}, loop, extent);
      run_in_step(loop.body, threads);
      return;
    }
    // Parallel iterations may come in any order, so they come in the one that is least expected.
    const bool backwards = loop.loop_kind == LoopKind::Parallel;
    const GridThread outer = scope_.thread;
    for (int64_t i = 0; i < extent; ++i) {
      if (watch_.is_cancelled()) throw Cancelled();
      scope_.vars[loop.var.get()] = backwards ? extent - 1 - i : i;
      if (loop.loop_kind == LoopKind::ThreadIndex) scope_.thread.set(loop.thread, i);
      run(loop.body);
    }
    scope_.thread = outer;
  }

  /// The threads of a block, one more axis of them. They share the storage that is there already.
  static std::vector<Bindings> threads_of(const std::vector<Bindings>& outer, const For& loop,
                                          int64_t extent) {
    std::vector<Bindings> threads;
    for (const Bindings& scope : outer) {
      for (int64_t i = 0; i < extent; ++i) {
        threads.push_back(scope);
        threads.back().vars[loop.var.get()] = i;
        threads.back().thread.set(loop.thread, i);
      }
    }
    return threads;
  }

  /// Runs the statement for all threads, none of which passes a barrier before all are there. What
  /// holds no barrier runs thread by thread; loops and branches around one must be the same for
  /// all.
  void run_in_step(const Stmt& stmt, std::vector<Bindings>& threads) {
    if (!waits_in(stmt).at_all()) {
      for (Bindings& thread : threads)
        Interpreter(thread, watch_).run(stmt);
      return;
    }
    if (const Block* block = as<Block>(stmt)) {
      for (const Stmt& inner : block->body)
        run_in_step(inner, threads);
    } else if (const For* loop = as<For>(stmt)) {
      run_loop_in_step(*loop, threads);
    } else if (const If* node = as<If>(stmt)) {
      run_if_in_step(*node, threads);
    } else if (const Allocate* allocate = as<Allocate>(stmt)) {
      allocate_in_step(allocate->buffer, threads);
      run_in_step(allocate->body, threads);
    } else if (as<Barrier>(stmt) && scope_.launches != nullptr) {
      ++scope_.launches->now.barrier;
    } else if (const Shuffle* shuffle = as<Shuffle>(stmt)) {
      exchange(*shuffle, threads);
    }
  }

  /// All threads have read before one writes.
  void exchange(const Shuffle& node, std::vector<Bindings>& threads) {
    std::unordered_map<int64_t, Scalar> values;
    for (Bindings& thread : threads)
      values.emplace(thread.thread.thread, Evaluate(thread)(node.value));
    for (Bindings& thread : threads) {
      const int64_t own = thread.thread.along_x() % node.width;
      int64_t behind = own + node.distance < node.width ? node.distance : 0;
      if (node.lane) behind = (Evaluate(thread).index(node.lane) & (node.width - 1)) - own;
      const auto found = values.find(thread.thread.thread + behind);
      if (found == values.end()) breach("a shuffle reads of a thread that does not come to it");
      const int64_t place = Evaluate(thread).position(node.buffer, node.indices, 0);
      Interpreter(thread, watch_).write(node.buffer, place, found->second);
    }
  }

  /// Warps may take different branches, where they do not wait for each other.
  void run_if_in_step(const If& node, std::vector<Bindings>& threads) {
    if (waits_in(&node).for_block) common_value(node.condition, threads);
    std::vector<Bindings> taken;
    std::vector<Bindings> others;
    for (const Bindings& thread : threads) {
      Bindings own = thread;
      const bool holds = Evaluate(own).condition(node.condition);
      (holds ? taken : others).push_back(std::move(own));
    }
    if (!taken.empty()) run_in_step(node.then_body, taken);
    if (!others.empty() && node.else_body) run_in_step(node.else_body, others);
  }

  void run_loop_in_step(const For& loop, std::vector<Bindings>& threads) {
    const int64_t extent = common_value(loop.extent, threads);
    if (is_thread_axis(loop.thread)) {
      std::vector<Bindings> inner = threads_of(threads, loop, extent);
      run_in_step(loop.body, inner);
      return;
    }
    for (int64_t i = 0; i < extent; ++i) {
      for (Bindings& thread : threads)
        thread.vars[loop.var.get()] = i;
      run_in_step(loop.body, threads);
    }
  }

  /// Shared memory is one for all threads of the block, other memory one for each.
  void allocate_in_step(const BufferRef& buffer, std::vector<Bindings>& threads) {
    for (Bindings& thread : threads) {
      if (buffer->scope == Scope::Shared && &thread != &threads[0]) {
        thread.buffers[buffer.get()] = threads[0].buffers[buffer.get()];
      } else {
        Interpreter(thread, watch_).allocate(buffer);
      }
    }
  }

  static int64_t common_value(const Expr& expr, std::vector<Bindings>& threads) {
    if (threads.empty()) return 0;
    const int64_t value = Evaluate(threads[0]).index(expr);
    for (Bindings& thread : threads) {
      if (Evaluate(thread).index(expr) != value) {
        breach("not all threads reach the barrier under {}", expr);
      }
    }
    return value;
  }

  void store(const Store& node) {
    int lanes = node.value->type.lanes;
    for (const Expr& index : node.indices)
      lanes = std::max(lanes, index->type.lanes);
    if (lanes == 1) {
      if (!evaluate_.condition(node.predicate)) return;
      const Scalar value = evaluate_(node.value);
      return write(node.buffer, evaluate_.position(node.buffer, node.indices, 0), value);
    }
    // All lanes are read before one is written.
    std::vector<std::pair<int64_t, Scalar>> values;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!evaluate_.condition(node.predicate, lane)) continue;
      const Scalar value = evaluate_(node.value, node.value->type.lanes > 1 ? lane : 0);
      values.emplace_back(evaluate_.position(node.buffer, node.indices, lane), value);
    }
    for (const auto& [position, value] : values)
      write(node.buffer, position, value);
  }

  void change(const Atomic& node) {
    const int64_t position = evaluate_.position(node.buffer, node.indices, 0);
    Storage& memory = evaluate_.storage(node.buffer);
    if (!memory.written[static_cast<size_t>(position)]) {
      breach("element {} of {} is changed before it is written", position, node.buffer->name);
    }
    if (evaluate_.is_shared(node.buffer) &&
        !memory.history.change(position, scope_.thread, scope_.launches->now)) {
      breach("element {} of {} is changed by a GPU thread while another one may use it", position,
             node.buffer->name);
    }
    const Scalar operands[] = {language::read_element(*memory.elements, position),
                               evaluate_(node.value)};
    language::write_element(*memory.elements, position,
                            language::apply_operator(node.op, operands));
  }

  void write(const BufferRef& buffer, int64_t position, const Scalar& value) {
    Storage& memory = evaluate_.storage(buffer);
    if (evaluate_.is_shared(buffer)) note_store(buffer, position, value);
    language::write_element(*memory.elements, position, value);
    memory.written[static_cast<size_t>(position)] = true;
    if (watch_.wants_nan() && std::isnan(value.floating)) {
      watch_.found_nan(*buffer, indices_of(position, memory.elements->shape), false);
    }
  }

  void note_store(const BufferRef& buffer, int64_t position, const Scalar& value) {
    Storage& memory = evaluate_.storage(buffer);
    const int64_t size = size_of(memory.elements->type);
    const auto* place = memory.elements->bytes.data() + position * size;
    const std::vector before(place, place + size);
    language::write_element(*memory.elements, position, value);
    const bool changes = !memory.written[static_cast<size_t>(position)] ||
                         !std::equal(before.begin(), before.end(), place);
    if (memory.history.write(position, scope_.thread, scope_.launches->now, changes)) return;
    breach("element {} of {} is stored to by a GPU thread while another one may use it", position,
           buffer->name);
  }

  void check(const Check& node) {
    const int64_t index = evaluate_.index(node.index);
    const int64_t extent = evaluate_.index(node.extent);
    if (index >= 0 && index < extent) return;
    watch_.check_fired(node.check, index, extent);
  }

  Bindings& scope_;
  InterpretWatch& watch_;
  Evaluate evaluate_;
};

void bind_parameters(const Kernel& kernel, std::span<HostTensor> arguments, Bindings& scope) {
  size_t next_stride = 0;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const BufferRef& parameter = kernel.parameters[i];
    HostTensor& argument = arguments[i];
    KILN_CHECK(argument.type == parameter->type);
    auto storage = std::make_shared<Storage>();
    storage->elements = &argument;
    storage->span = product_of(argument.shape);
    storage->written.assign(static_cast<size_t>(storage->span), !kernel.is_output[i]);
    scope.buffers[parameter.get()] = std::move(storage);

    if (kernel.strides.empty()) continue;
    for (size_t d = 0; d < argument.shape.size(); ++d) {
      const std::vector<int64_t> inner(argument.shape.begin() + static_cast<int64_t>(d) + 1,
                                       argument.shape.end());
      scope.vars[kernel.strides.at(next_stride++).get()] = product_of(inner);
    }
  }
}

/// Before the loops run, so that the first NaN stored is one that the kernel made.
void look_for_nan(const Kernel& kernel, std::span<HostTensor> arguments, InterpretWatch& watch) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (kernel.is_output[i] || !is_float(arguments[i].type)) continue;
    const int64_t count = product_of(arguments[i].shape);
    for (int64_t at = 0; at < count; ++at) {
      if (!std::isnan(language::read_element(arguments[i], at).floating)) continue;
      watch.found_nan(*kernel.parameters[i], indices_of(at, arguments[i].shape), true);
    }
  }
}

}  // namespace

void InterpretWatch::check_fired(int check, int64_t index, int64_t extent) {
  fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE", "index {} is outside of 0..{} (check #{})",
       index, extent, check);
}

bool interpret(const Kernel& kernel, std::span<const int64_t> sizes,
               std::span<HostTensor> arguments, InterpretWatch& watch) {
  KILN_CHECK(sizes.size() == kernel.sizes.size() && arguments.size() == kernel.parameters.size());
  Bindings scope;
  for (size_t i = 0; i < sizes.size(); ++i)
    scope.vars[kernel.sizes[i].get()] = sizes[i];
  bind_parameters(kernel, arguments, scope);
  if (watch.wants_nan()) look_for_nan(kernel, arguments, watch);
  Launches launches;
  if (watch.wants_races()) {
    for (const Stmt& launched : launched_statements(kernel.body))
      launches.statements.insert(launched.get());
    scope.launches = &launches;
  }
  Interpreter interpreter(scope, watch);
  for (const Kernel::WorkspaceBuffer& entry : kernel.workspace)
    interpreter.allocate(entry.buffer);
  try {
    interpreter.run(kernel.body);
  } catch (const Cancelled&) {
    return false;
  }
  return true;
}

void interpret(const Kernel& kernel, std::span<const int64_t> sizes,
               std::span<HostTensor> arguments) {
  InterpretWatch nobody;
  interpret(kernel, sizes, arguments, nobody);
}

}  // namespace kiln::ir

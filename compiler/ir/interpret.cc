// The reference semantics of lowered loops, one scalar at a time: what passes and code generators
// are tested against. It looks for mistakes that a fast run would hide: indices outside a shape,
// elements read before they are written, barriers that not all threads reach or that are missing
// (races.cc), and parallel loops that rely on their order, which is why those run backwards.
#include "compiler/ir/interpret.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <fmt/ranges.h>

#include "compiler/ir/interpret_values.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/ir/races.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"
#include "runtime/core/size_expr.h"

namespace kiln::ir {
namespace {

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
      case NodeKind::Background:
        scope_.groups.emplace_back();
        scope_.is_background = true;
        run(as<Background>(stmt)->body);
        scope_.is_background = false;
        return;
      case NodeKind::Await: return await(*as<Await>(stmt));
      case NodeKind::Tensorize: return run(as<Tensorize>(stmt)->body);
      case NodeKind::MultiplyTiles: return run(as<MultiplyTiles>(stmt)->body);
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
    storage->span = elements_in_memory(*buffer, elements_of(*buffer, held));
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

  /// As late as can be, here.
  void await(const Await& node) {
    const auto groups = static_cast<size_t>(node.groups);
    while (scope_.groups.size() > groups) {
      for (const LateStore& late : scope_.groups.front())
        write(late.buffer, late.position, late.value);
      scope_.groups.erase(scope_.groups.begin());
    }
  }

  /// Until it is awaited nobody knows the element, and others must not use it.
  void store_late(const BufferRef& buffer, int64_t position, const Scalar& value) {
    Storage& memory = evaluate_.storage(buffer);
    memory.written[static_cast<size_t>(position)] = false;
    if (evaluate_.is_shared(buffer)) note_store(buffer, position, value);
    scope_.groups.back().push_back({buffer, position, value});
  }

  void write(const BufferRef& buffer, int64_t position, const Scalar& value) {
    if (scope_.is_background && buffer->scope == Scope::Shared)
      return store_late(buffer, position, value);
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
    std::array<std::byte, 8> before;
    std::memcpy(before.data(), place, static_cast<size_t>(size));
    language::write_element(*memory.elements, position, value);
    const bool changes = !memory.written[static_cast<size_t>(position)] ||
                         std::memcmp(before.data(), place, static_cast<size_t>(size)) != 0;
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

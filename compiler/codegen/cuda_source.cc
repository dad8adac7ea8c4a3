// Writes CUDA C from lowered loops, a __global__ function for each launch. The text is meant to be
// read: the user's names, no more parentheses than C needs, and only those functions of ours in
// front that it calls. Unrolling, vectors and barriers are decided already; ptxas does the rest.
#include "compiler/codegen/cuda_source.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/matrix_fragments.h"
#include "compiler/analysis/matrix_product.h"
#include "compiler/codegen/artifact_parts.h"
#include "compiler/codegen/cuda_copies.h"
#include "compiler/codegen/cuda_divisions.h"
#include "compiler/codegen/cuda_expr.h"
#include "compiler/codegen/cuda_launch.h"
#include "compiler/codegen/cuda_parameters.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/cuda_rests.h"
#include "compiler/codegen/cuda_turns.h"
#include "compiler/codegen/cuda_uses.h"
#include "compiler/codegen/launch_bounds.h"
#include "compiler/codegen/matrix_calls.h"
#include "compiler/codegen/matrix_chains.h"
#include "compiler/codegen/narrow_index.h"
#include "compiler/codegen/size_expr.h"
#include "compiler/codegen/swizzled_places.h"
#include "compiler/ir/build.h"
#include "compiler/ir/dispatch.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/races.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr int64_t kFarthestBehind = 1 << 20;  // elements: an instruction has 24 bits for the bytes

/// The type that moves so many bytes at once.
std::string_view vector_type(int64_t bytes) {
  switch (bytes) {
    case 4: return "unsigned";
    case 8: return "uint2";
    default: KILN_CHECK(bytes == kSharedAlignment); return "uint4";
  }
}

/// Writes one __global__ function.
class Function {
 public:
  Function(const CudaEntry& entry, const LaunchNest& nest, const HostLoops& around,
           LaunchOrder order, const CudaOptions& options)
      : kernel_(*entry.kernel),
        nest_(nest),
        around_(around),
        order_(order),
        options_(options),
        has_narrow_sizes_(entry.is_narrow),
        is_narrow_(entry.is_narrow || has_narrow_indices(nest, around)) {
    for (const For* axis : nest.axes)
      loops_.push_back({axis->var, axis->extent});
    names_.declare(lane_, "kiln_lane");
  }

  std::string operator()(const std::string& name) {
    // Names are given in the order in which a person reads them: parameters first.
    const std::string parameters =
        cuda_parameters(kernel_, nest_.body, around_, names_, size_type());
    MatrixBuffers matrices = matrix_buffers(nest_.body, nest_.axes);
    sums_ = std::move(matrices.sums);
    if (!options_.short_sums) chains_ = matrix_chains(nest_.body, nest_.axes);
    TurnLoops turns = turn_loops(nest_.body);
    written_twice_ = std::move(turns.written_twice);
    rests_ = rest_loops(nest_.body);
    const RegisterNeeds needs{.has_matrices = !sums_.empty(),
                              .has_turns = !turns.all.empty(),
                              .multiprocessors = options_.multiprocessors};
    line("extern \"C\" __global__ void {}{}({}) {{", launch_bounds_of(nest_, needs), name,
         parameters);
    ++depth_;
    if (order_.is_after_checks) line("if (kiln_is_stopped()) return;");
    for (const For* axis : nest_.axes) {
      line("const {} {} = {};", index_type(), names_[axis->var], name_of(axis->thread));
    }
    declare_divisions();
    vectors_ = vector_buffers(nest_.body);
    vectors_.merge(matrices.factors);
    declare_workspace();
    declare_shared_memory();
    statement(nest_.body);
    --depth_;
    line("}}");
    return std::move(out_);
  }

  /// The statement of each line of the text.
  std::vector<const Node*> statements() { return std::move(statements_); }

 private:
  void declare_divisions() {
    for (const KnownValue& value : repeated_divisions(nest_)) {
      const std::string quotient = text(value.expr);
      line("const {} {} = {};", index_type(), names_[value.var], quotient);
      divisions_.push_back(value);
    }
  }

  /// Only the buffers that this launch uses: each is a pointer into the one workspace of the call.
  void declare_workspace() {
    const BufferSet used = used_buffers(nest_.body);
    for (const Kernel::WorkspaceBuffer& entry : kernel_.workspace) {
      if (!used.contains(entry.buffer.get())) continue;
      const std::string_view type = cuda_type(entry.buffer->type);
      const std::optional<int64_t> offset = as_const_int(entry.offset_bytes);
      const bool is_far = offset && *offset > std::numeric_limits<int32_t>::max();
      const std::string bytes = cuda_expr(entry.offset_bytes, {names_, has_narrow_sizes_});
      const std::string place = is_far ? fmt::format("kiln_far(workspace, {})", bytes)
                                       : fmt::format("(workspace + ({}))", bytes);
      line("{}* const {} = ({}*){};", type, names_[entry.buffer], type, place);
    }
  }

  /// More than every device has without being asked is one piece that the launch asks for.
  void declare_shared_memory() {
    const int64_t bytes = dynamic_shared_bytes(nest_);
    if (bytes == 0) return;
    line("extern __shared__ __align__({}) unsigned char kiln_shared_memory[];  // {} bytes",
         kSharedAlignment, bytes);
    is_dynamic_ = true;
  }

  /// A launch is given 64 bits, of which a parameter may take those that count.
  std::string_view size_type() const { return has_narrow_sizes_ ? "int" : "long long"; }
  std::string_view index_type() const { return is_narrow_ ? "int" : "long long"; }
  CudaScope scope() { return {names_, is_narrow_, divisions_, &loops_}; }
  std::string text(const Expr& expr) { return cuda_expr(expr, scope()); }
  std::string element(const BufferRef& buffer, const Expr& index) {
    return cuda_element(buffer, index, scope());
  }

  void statement(const Stmt& stmt) {
    const Node* const around = std::exchange(current_, stmt.get());
    dispatch(*stmt, [this](const auto& node) { write(node); });
    current_ = around;
  }

  void write(const Block& block) {
    for (const Stmt& stmt : block.body) {
      // Copies of an unrolled loop declare the same names.
      const bool has_scope = block.body.size() > 1 && as<Allocate>(stmt) != nullptr;
      if (has_scope) {
        line("{{");
        ++depth_;
      }
      statement(stmt);
      if (has_scope) {
        --depth_;
        line("}}");
      }
    }
  }

  void write(const For& loop) {
    KILN_CHECK(loop.loop_kind == LoopKind::Serial || loop.loop_kind == LoopKind::Unrolled);
    if (is_background_ && is_written_out(loop)) return write_out(loop);
    const bool is_chained = next_link_ < chains_.size() && chains_[next_link_].products == &loop;
    if (is_chained) return write_chained(loop, chains_[next_link_++]);
    write_product_or_loop(loop);
  }

  /// Sums of a chain of products are those of the whole once it ends.
  void write_chained(const For& loop, const ChainLink& link) {
    const std::string name = fmt::format("kiln_chain_{}", link.chain);
    if (link.is_first) line("kiln_chain<{}> {};", elements_of(*link.sums), name);
    chain_ = name;
    write_product_or_loop(loop);
    chain_.clear();
    if (link.is_last) line("{}.add_to({});", name, names_[link.sums]);
  }

  void write_product_or_loop(const For& loop) {
    const auto product = analysis::find_matrix_product(loop, nest_.axes);
    if (!product) return write_loop(loop);
    directive(fmt::format("#if {}", matrix_condition(*product)));
    write(*product);
    directive("#else");
    write_loop(loop);
    directive("#endif");
  }

  /// All fragments are loaded, then multiplied: each is used by several products.
  void write(const MatrixProduct& product) {
    const size_t rows = product.rows.tiles.size();
    const size_t columns = product.columns.tiles.size();
    line("{{");
    ++depth_;
    const bool is_anew = !chain_.empty() && has_moved_ && moving_.all == nullptr;
    line("const int kiln_lane = {};",
         is_anew ? "kiln_anew(threadIdx.y * 4 + threadIdx.x)" : "threadIdx.y * 4 + threadIdx.x");
    std::string sums = names_[product.sums];
    if (!chain_.empty()) {
      line("float* const kiln_sums = {}.sums({});", chain_, sums);
      sums = "kiln_sums";
    }
    line("unsigned kiln_rows[{}][4], kiln_columns[{}][2];", rows, columns);
    load_fragments("kiln_row", product.rows, false);
    load_fragments("kiln_column", product.columns, true);
    for (const std::string& call : multiply_calls(product, sums))
      line("{}", call);
    --depth_;
    line("}}");
  }

  /// Those of all tiles; of columns two at a time.
  void load_fragments(std::string_view name, const MatrixFactor& factor, bool are_columns) {
    const Expr lanes =
        analysis::places_of_lanes(factor, are_columns).to_expr(std::array{Expr(lane_)});
    const bool is_swizzled = factor.buffer->swizzle != 0;
    if (!is_swizzled) declare_place(name, factor, lanes);
    for (size_t i = 0; i < factor.tiles.size(); i += are_columns ? 2 : 1) {
      const auto place = [&](int64_t behind) {
        const int64_t tile = factor.tiles[i] + behind;
        return is_swizzled ? place_in_product(factor, lanes + tile)
                           : fmt::format("{} + {}", name, tile);
      };
      for (const std::string& call :
           load_calls(factor, are_columns, fmt::format("{}s[{}]", name, i), place))
        line("{}", call);
    }
  }

  /// Where the row begins that a lane loads, of the first tile.
  void declare_place(std::string_view name, const MatrixFactor& factor, const Expr& lanes) {
    // What is unrolled comes last: a constant of the instruction.
    Expr first = factor.first;
    std::string behind;
    if (around_product_ != nullptr) {
      const VarRef& var = around_product_->var;
      const std::optional<int64_t> stride = analysis::stride_of(first, var);
      if (stride && *stride != 0) {
        first = analysis::simplify(substitute(first, {{var, index(0)}}));
        behind = fmt::format(" + {} * {}", names_[var], *stride);
      }
    }
    line("const {}* const {} = &{}[{}] + {}{};", cuda_type(factor.buffer->type), name,
         names_[factor.buffer], text(first), text(lanes), behind);
  }

  std::string place_in_product(const MatrixFactor& factor, const Expr& behind) {
    std::vector<LoopAround> loops = loops_;
    if (around_product_ != nullptr) loops.back().is_written_out = true;
    loops.push_back({lane_, index(kWarp)});
    CudaScope around = scope();
    around.loops = &loops;
    return "&" + cuda_element(factor.buffer, factor.first + behind, around);
  }

  void write_loop(const For& loop) {
    const std::optional<MovingPlaces> moving = moving_places(loop);
    if (!moving) return write_iterations(loop);
    line("{{");
    ++depth_;
    for (size_t i = 0; i < moving->places.size(); ++i) {
      const MovingPlaces::Place& place = moving->places[i];
      line("const char* kiln_from_{} = kiln_moving(&{}[{}]);", i, names_[place.buffer],
           text(place.first));
    }
    moving_ = {.all = &*moving, .loop = &loop, .at = std::vector<int64_t>(moving->places.size())};
    write_iterations(loop);
    moving_ = {};
    has_moved_ = true;
    --depth_;
    line("}}");
  }

  /// Moves pointers on to the places of a group, or of the next iteration behind the last one:
  /// those that it is too far from for an instruction to say.
  void move_to(size_t group) {
    const bool is_last = group + 1 == moving_.all->places[0].bytes.size();
    for (size_t i = 0; i < moving_.at.size(); ++i) {
      const int64_t missing = moving_.all->places[i].bytes[group] - moving_.at[i];
      if (missing == 0 || (!is_last && std::abs(missing) <= kFarthestFrom)) continue;
      line("kiln_from_{} += {};", i, missing);
      moving_.at[i] += missing;
    }
  }

  void write_iterations(const For& loop) {
    // Registers have no index: what chooses one is written out.
    const bool is_unrolled = loop.loop_kind == LoopKind::Unrolled;
    if (is_unrolled || (chooses_among(loop, sums_) && as_const_int(loop.extent)))
      line("#pragma unroll");
    if (written_twice_.contains(&loop)) line("#pragma unroll 2");
    if (rests_.contains(&loop)) line("#pragma unroll 1");
    // Between barriers there is enough to do without a second iteration.
    if (!is_unrolled && !sums_.empty() && waits_in(loop.body).for_block) line("#pragma unroll 1");
    const std::string& var = names_[loop.var];
    line("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", index_type(), var, comparand(loop.extent));
    const For* const around = std::exchange(around_product_, &loop);
    loops_.push_back({loop.var, loop.extent, is_unrolled});
    ++depth_;
    statement(loop.body);
    if (moving_.loop == &loop) move_to(moving_.group);
    --depth_;
    loops_.pop_back();
    around_product_ = around;
    line("}}");
  }

  void write(const If& node) {
    line("if ({}) {{", text(node.condition));
    nested(node.then_body);
    if (node.else_body) {
      line("}} else {{");
      nested(node.else_body);
    }
    line("}}");
  }

  /// Where it can a copy to shared memory goes its own way; the rest is there at once, which is
  /// early enough.
  void write(const Background& node) {
    if (moving_.all != nullptr) move_to(moving_.group);
    is_background_ = true;
    statement(node.body);
    is_background_ = false;
    ++moving_.group;
    moving_.copy = 0;
    line("kiln_end_group();");
  }

  void write(const Await& node) { line("kiln_await<{}>();", node.groups); }

  void write_late(const Store& store, int64_t bytes) {
    const Load& load = *as<Load>(store.value);
    const int64_t size = size_of(store.buffer->type);
    const CudaPlace to = late_element(store.buffer, first_element(store.indices[0]));
    const std::string into = "&" + to.text;
    std::string from;
    int64_t behind = 0;
    if (moving_.all != nullptr) {
      const size_t i = moving_.copy++;
      behind = moving_.all->places[i].bytes[moving_.group] - moving_.at[i];
      from = fmt::format("kiln_from_{}", i);
    } else {
      const CudaPlace place = late_element(load.buffer, first_element(load.indices[0]));
      behind = place.behind * size;
      from = "&" + place.text;
    }
    const std::string where = fmt::format("<{}, {}, {}>", bytes, to.behind * size, behind);
    if (!load.predicate) return line("kiln_copy{}({}, {});", where, into, from);
    const Expr is_there =
        analysis::simplify(substitute(for_all(load.predicate), written_out_values()));
    line("kiln_copy_or_zero{}({}, {}, {});", where, into, from, text(is_there));
  }

  Substitution written_out_values() const {
    Substitution values;
    for (const auto& [var, iteration] : written_out_)
      values[var] = index(iteration);
    return values;
  }

  /// A place by the first one of the loops that are written out, which is computed once for all of
  /// them, and how many elements behind it is, which is a part of the instruction.
  CudaPlace late_element(const BufferRef& buffer, const Expr& place) {
    if (buffer->swizzle != 0)
      return cuda_place(buffer, substitute(place, written_out_values()), scope());
    int64_t behind = 0;
    Substitution rest;
    for (const auto& [var, iteration] : written_out_) {
      const std::optional<int64_t> stride = analysis::stride_of(place, var);
      const int64_t with_this = behind + stride.value_or(0) * iteration;
      const bool fits = stride && std::abs(with_this) <= kFarthestBehind;
      if (fits) behind = with_this;
      rest[var] = index(fits ? 0 : iteration);
    }
    const Expr first = rest.empty() ? place : analysis::simplify(substitute(place, rest));
    return {fmt::format("{}[{}]", names_[buffer], text(first)), behind};
  }

  void write_out(const For& loop) {
    for (int64_t i = 0; i < *as_const_int(loop.extent); ++i) {
      written_out_.emplace_back(loop.var, i);
      statement(loop.body);
      written_out_.pop_back();
    }
  }

  /// Neighbours that move at once; the pass that made them knows that they are aligned.
  void write_vector(const Store& store, const Ramp& to) {
    const Load* load = as<Load>(store.value);
    const Ramp* from = load != nullptr ? as<Ramp>(load->indices[0]) : nullptr;
    KILN_CHECK(from != nullptr && is_const(to.stride, 1) && is_const(from->stride, 1));
    line("*({0}*)&{1} = *(const {0}*)&{2};", vector_type(to.lanes * size_of(store.buffer->type)),
         element(store.buffer, to.base), element(load->buffer, from->base));
  }

  void write(const Store& store) {
    const int64_t late = is_background_ ? late_bytes(store) : 0;
    if (late > 0) return write_late(store, late);
    if (const Ramp* ramp = as<Ramp>(store.indices[0])) return write_vector(store, *ramp);
    const std::string guard = store.predicate ? fmt::format("if ({}) ", text(store.predicate)) : "";
    line("{}{} = {};", guard, element(store.buffer, store.indices[0]), text(store.value));
  }

  /// Of integers CUDA has it; of int64 a sum is that of the same bits as uint64.
  void write(const Atomic& node) {
    const std::string place = element(node.buffer, node.indices[0]);
    const std::string value = text(node.value);
    const std::string_view name = node.op == Operator::Add   ? "atomicAdd"
                                  : node.op == Operator::Min ? "atomicMin"
                                                             : "atomicMax";
    if (is_float(node.buffer->type)) {
      line("kiln_{}(&{}, {});", node.op == Operator::Min ? "atomic_min" : "atomic_max", place,
           value);
    } else if (node.op == Operator::Add && node.buffer->type == DType::Int64) {
      line("atomicAdd((unsigned long long*)&{}, (unsigned long long)({}));", place, value);
    } else {
      line("{}(&{}, {});", name, place, value);
    }
  }

  void write(const Allocate& allocate) {
    const Buffer& buffer = *allocate.buffer;
    const int64_t elements = elements_of(buffer);
    const std::string_view type = cuda_type(buffer.type);
    const std::string& name = names_[allocate.buffer];
    if (is_dynamic_ && buffer.scope == Scope::Shared) {
      line("{0}* const {1} = ({0}*)(kiln_shared_memory + {2});", type, name, shared_bytes_);
      shared_bytes_ += aligned_bytes(buffer);
    } else {
      const std::string aligned =
          vectors_.contains(&buffer) ? fmt::format("__align__({}) ", kSharedAlignment) : "";
      line("{}{}{} {}[{}];", buffer.scope == Scope::Shared ? "__shared__ " : "", aligned, type,
           name, elements);
    }
    statement(allocate.body);
  }

  /// One comparison for both ends: a negative index is a huge unsigned one.
  void write(const Check& check) {
    const std::string place = text(check.index);
    const std::string extent = text(check.extent);
    line("if ((unsigned long long)({}) >= (unsigned long long)({})) {{", place, extent);
    ++depth_;
    line("{}(fault, {}, {}, {});", order_.is_before_others ? "kiln_stop" : "kiln_fire", check.check,
         place, extent);
    line("return;");
    --depth_;
    line("}}");
  }

  void write(const Barrier&) {
    line("{}", most_threads(nest_) <= kWarp ? "__syncwarp();" : "__syncthreads();");
  }

  void write(const Shuffle& node) {
    line("{}[{}] = {}({}, {}, {});", names_[node.buffer], text(node.indices[0]),
         node.lane ? "kiln_shuffle_lane" : "kiln_shuffle", text(node.value),
         node.lane ? text(node.lane) : std::to_string(node.distance), node.width);
  }

  // build_loops makes no others for a GPU.
  template <typename T>
  void write(const T&) {
    check_failed("a statement of a GPU", __FILE__, __LINE__);
  }

  void nested(const Stmt& body) {
    ++depth_;
    statement(body);
    --depth_;
  }

  /// The text as an operand of `<`.
  std::string comparand(const Expr& expr) {
    const std::string text = this->text(expr);
    const bool is_simple = as<Var>(expr) != nullptr || as<IntImm>(expr) != nullptr;
    return is_simple ? text : "(" + text + ")";
  }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
    statements_.push_back(current_);
  }

  /// Of the preprocessor, which wants no indentation.
  void directive(std::string_view text) {
    out_ += text;
    out_.push_back('\n');
    statements_.push_back(current_);
  }

  /// Pointers that move with a loop, and how many bytes they are on.
  struct Moving {
    const MovingPlaces* all = nullptr;
    const For* loop = nullptr;
    size_t group = 0;
    size_t copy = 0;  // in the group
    std::vector<int64_t> at = {};
  };

  const Kernel& kernel_;
  const LaunchNest& nest_;
  const HostLoops& around_;  // at most one, whose number is the last argument
  const LaunchOrder order_;
  const CudaOptions& options_;
  const bool has_narrow_sizes_;
  const bool is_narrow_;  // loop variables and what is made of them have 32 bits
  CudaNames names_;
  std::vector<KnownValue> divisions_;  // those that are declared
  std::string out_;
  std::vector<const Node*> statements_;
  const Node* current_ = nullptr;
  size_t depth_ = 0;
  BufferSet vectors_;  // moved at once
  BufferSet sums_;     // of products of matrices
  LoopSet written_twice_;
  LoopSet rests_;
  std::vector<ChainLink> chains_;  // in the order of the code
  size_t next_link_ = 0;
  std::string chain_;                    // around a product; empty where it adds to the whole
  bool has_moved_ = false;               // a loop with moving pointers has been written
  bool is_background_ = false;           // around
  const For* around_product_ = nullptr;  // the innermost loop
  Iterations written_out_;               // in it
  Moving moving_;                        // of the loop around
  bool is_dynamic_ = false;              // shared memory is one piece
  int64_t shared_bytes_ = 0;             // of it those that are given out
  std::vector<LoopAround> loops_;        // and axes of the launch
  const VarRef lane_ = Var::make("kiln_lane");
};

}  // namespace

CudaSource cuda_source(std::span<const CudaEntry> entries, const CudaOptions& options) {
  CudaSource result;
  std::string functions;
  for (const CudaEntry& entry : entries) {
    std::vector<Launch>& launches = result.launches.emplace_back();
    std::vector<LaunchLoop>& loops = result.loops.emplace_back();
    const For* repeated = nullptr;
    const std::vector<LaunchOrder> orders = orders_of(entry.kernel->body);
    ir::map_launches(entry.kernel->body, [&](const Stmt& launched, const HostLoops& around) {
      KILN_CHECK(around.size() <= 1);
      const auto place = static_cast<int32_t>(launches.size());
      const For* const loop = around.empty() ? nullptr : around[0];
      if (loop != nullptr && loop != repeated)
        loops.push_back({place, place, to_size_expr(loop->extent, scalars_of(*entry.kernel))});
      if (loop != nullptr) loops.back().end = place + 1;
      repeated = loop;
      const LaunchNest nest = ir::launch_nest(launched);
      const std::string name = fmt::format("{}_{}", entry.prefix, place);
      if (!functions.empty()) {
        functions += "\n";
        result.statements.push_back(nullptr);
      }
      Function function(entry, nest, around, orders[launches.size()], options);
      functions += function(name);
      const std::vector<const Node*> statements = function.statements();
      result.statements.insert(result.statements.end(), statements.begin(), statements.end());
      launches.push_back(launch_of(*entry.kernel, nest, name));
      return launched;
    });
  }
  const std::string prelude = cuda_prelude(functions);
  result.statements.insert(result.statements.begin(),
                           static_cast<size_t>(std::ranges::count(prelude, '\n')), nullptr);
  result.text = prelude + functions;
  return result;
}

}  // namespace kiln::codegen

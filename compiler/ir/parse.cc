// A recursive descent over signature, workspace and statements, the inverse of print.cc. Names are
// scoped as they are printed, a name not seen before in a parameter's shape is a size; whether a
// parameter is an output follows from whether it is stored to, unless the text says otherwise.
#include "compiler/ir/parse.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/parse_expr.h"
#include "compiler/ir/swizzle.h"
#include "runtime/core/error.h"

namespace kiln::ir {
namespace {

constexpr int kMaxDepth = 100;  // of statements: each level takes stack here and in every pass

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}

  Kernel parse() {
    reader_.expect("fn");
    kernel_.name = reader_.expect_name("the name of the kernel");
    if (reader_.accept("[")) {
      sizes_are_listed_ = true;
      while (!reader_.is("]")) {
        add_size(reader_.peek());
        if (!reader_.is("]")) reader_.expect(",");
      }
      reader_.expect("]");
    }
    parse_parameters();
    reader_.expect("{");
    parse_workspace();
    parse_nontemporal();
    kernel_.body = parse_statements();
    reader_.expect("}");
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      const bool stored = stores_to(kernel_.body, kernel_.parameters[i]);
      kernel_.is_output.push_back(outputs_[i].value_or(stored));
    }
    parse_checks();
    if (reader_.peek().kind != Token::Kind::End) {
      fail_syntax(reader_.peek(),
                  fmt::format("expected the end, but got '{}'", reader_.peek().text));
    }
    return std::move(kernel_);
  }

 private:
  void add_size(const Token& at) {
    const std::string name = reader_.expect_name("the name of a size");
    if (names_.vars.count(name) > 0) fail_syntax(at, fmt::format("'{}' is named twice", name));
    const VarRef size = Var::make(name);
    names_.vars.emplace(name, size);
    kernel_.sizes.push_back(size);
  }

  /// `(A: float32[n, m], C: float32[n] output)`
  void parse_parameters() {
    reader_.expect("(");
    while (!reader_.is(")")) {
      kernel_.parameters.push_back(parse_declaration(true));
      outputs_.emplace_back();
      if (reader_.accept("output")) outputs_.back() = true;
      if (reader_.accept("input")) outputs_.back() = false;
      if (!reader_.is(")")) reader_.expect(",");
    }
    reader_.expect(")");
  }

  /// `s1: float32[1, 32]`. In a parameter, names not seen before are sizes and strides.
  BufferRef parse_declaration(bool is_parameter, Scope scope = Scope::Global) {
    const Token at = reader_.peek();
    const std::string name = reader_.expect_name("the name of a buffer");
    if (names_.buffers.count(name) > 0) fail_syntax(at, fmt::format("'{}' is named twice", name));
    reader_.expect(":");
    const Token type_at = reader_.take();
    const std::optional<DType> type = find_dtype(type_at.text);
    if (!type) fail_syntax(type_at, fmt::format("there is no type '{}'", type_at.text));
    const std::vector<Expr> shape =
        parse_extents(is_parameter && !sizes_are_listed_ ? &kernel_.sizes : nullptr);
    std::vector<Expr> strides;
    if (reader_.accept("strides")) {
      strides = parse_extents(is_parameter ? &kernel_.strides : nullptr);
      if (strides.size() != shape.size()) {
        fail_syntax(at, fmt::format("'{}' has {} dimensions but {} strides", name, shape.size(),
                                    strides.size()));
      }
    }
    if (!is_parameter && reader_.accept("scope")) scope = parse_scope();
    const int64_t swizzle = reader_.accept("swizzle") ? parse_swizzle(*type, scope) : 0;
    const BufferRef buffer = Buffer::make(name, *type, shape, scope, strides, swizzle);
    names_.buffers.emplace(name, buffer);
    return buffer;
  }

  int64_t parse_swizzle(DType type, Scope scope) {
    reader_.expect("(");
    const Token at = reader_.peek();
    const std::optional<int64_t> every =
        as_const_int(build_typed(read_expression(reader_), names_, kIndexType));
    reader_.expect(")");
    if (scope != Scope::Shared || !every || !may_swizzle(type, *every)) {
      fail_syntax(at,
                  "a swizzle is of shared memory, by a power of two of elements that are at least "
                  "128 bytes");
    }
    return *every;
  }

  Scope parse_scope() {
    reader_.expect("(");
    const Token at = reader_.take();
    reader_.expect(")");
    if (at.text == "global") return Scope::Global;
    if (at.text == "shared") return Scope::Shared;
    if (at.text == "warp") return Scope::Warp;
    if (at.text == "local") return Scope::Local;
    fail_syntax(at, fmt::format("a scope is global, shared, warp or local, but got '{}'", at.text));
  }

  /// `[n, m + 1]`; names not known are added to the list, where there is one.
  std::vector<Expr> parse_extents(std::vector<VarRef>* new_names) {
    std::vector<Expr> extents;
    reader_.expect("[");
    while (!reader_.is("]")) {
      const Syntax syntax = read_expression(reader_);
      if (new_names != nullptr) declare_names(syntax, *new_names);
      extents.push_back(build_typed(syntax, names_, kIndexType));
      if (!reader_.is("]")) reader_.expect(",");
    }
    reader_.expect("]");
    return extents;
  }

  void declare_names(const Syntax& syntax, std::vector<VarRef>& list) {
    if (syntax.kind == Syntax::Kind::Name && names_.vars.count(syntax.text) == 0) {
      const VarRef var = Var::make(syntax.text);
      names_.vars.emplace(syntax.text, var);
      list.push_back(var);
    }
    for (const Syntax& operand : syntax.operands)
      declare_names(operand, list);
  }

  Expr parse_index() { return build_typed(read_expression(reader_), names_, kIndexType); }

  /// `workspace s1: float32[n] at 0 per_thread`, and the bytes of all:
  /// `workspace bytes n*4, 0 per_thread`
  void parse_workspace() {
    while (reader_.accept("workspace")) {
      if (reader_.accept("bytes")) {
        kernel_.workspace_bytes = parse_index();
        reader_.expect(",");
        kernel_.workspace_bytes_per_thread = parse_index();
        reader_.expect("per_thread");
        continue;
      }
      Kernel::WorkspaceBuffer entry;
      entry.buffer = parse_declaration(false);
      reader_.expect("at");
      entry.offset_bytes = parse_index();
      entry.per_thread = reader_.accept("per_thread");
      kernel_.workspace.push_back(std::move(entry));
    }
  }

  /// `nontemporal C`
  void parse_nontemporal() {
    while (reader_.accept("nontemporal")) {
      const Token at = reader_.peek();
      const auto found = names_.buffers.find(reader_.expect_name("the name of a parameter"));
      const bool is_parameter =
          found != names_.buffers.end() &&
          std::ranges::find(kernel_.parameters, found->second) != kernel_.parameters.end();
      if (!is_parameter) fail_syntax(at, fmt::format("'{}' is no parameter", at.text));
      kernel_.nontemporal.push_back(found->second);
    }
  }

  /// Statements up to the closing brace; what is named inside ends there.
  Stmt parse_statements() {
    if (++depth_ > kMaxDepth) fail_syntax(reader_.peek(), "the statements are nested too deeply");
    const NameScope outside = names_;
    std::vector<Stmt> statements;
    while (!reader_.is("}")) {
      if (reader_.accept(Allocate::kWord)) {
        const BufferRef buffer = parse_declaration(false);
        statements.push_back(Allocate::make(buffer, parse_statements()));
        break;
      }
      statements.push_back(parse_statement());
    }
    names_ = outside;
    --depth_;
    return Block::make(std::move(statements));
  }

  Stmt parse_braces() {
    reader_.expect("{");
    Stmt body = parse_statements();
    reader_.expect("}");
    return body;
  }

  Stmt parse_statement() {
    if (reader_.is("{")) return parse_braces();
    if (reader_.accept(For::kWord)) return parse_for();
    if (reader_.accept(If::kWord)) return parse_if();
    if (reader_.accept(Check::kWord)) return parse_check();
    if (reader_.accept(Barrier::kWord)) return Barrier::make();
    if (reader_.accept(Atomic::kWord)) return parse_atomic();
    if (reader_.accept(Shuffle::kWord)) return parse_shuffle();
    if (reader_.accept(Background::kWord)) return Background::make(parse_braces());
    if (reader_.accept(Await::kWord)) return parse_await();
    if (reader_.accept(Tensorize::kWord)) return parse_tensorize();
    if (reader_.accept(MultiplyTiles::kWord)) return MultiplyTiles::make(parse_braces());
    if (reader_.accept(Prefetch::kWord)) return parse_prefetch(FetchInto::L1);
    if (reader_.accept(Prefetch::kWordOfL2)) return parse_prefetch(FetchInto::L2);
    return parse_store();
  }

  /// `for i in 0..n parallel { .. }`
  Stmt parse_for() {
    const Token at = reader_.peek();
    const std::string name = reader_.expect_name("the name of a loop variable");
    if (names_.vars.count(name) > 0) {
      fail_syntax(at, fmt::format("'{}' is the name of something around it", name));
    }
    reader_.expect("in");
    reader_.expect("0");
    reader_.expect("..");
    const Expr extent = parse_index();
    ThreadAxis thread = ThreadAxis::None;
    const LoopKind kind = parse_kind(at, name, thread);
    const NameScope outside = names_;
    const VarRef var = Var::make(name);
    names_.vars.emplace(name, var);
    const Stmt body = parse_braces();
    names_ = outside;
    return For::make(var, extent, kind, thread, body);
  }

  /// What stands between extent and body. A loop that is called as its axis has a plain `bind`.
  LoopKind parse_kind(const Token& at, const std::string& name, ThreadAxis& thread) {
    if (reader_.accept("parallel")) return LoopKind::Parallel;
    if (reader_.accept("host")) return LoopKind::Host;
    if (reader_.accept("vectorize")) return LoopKind::Vectorized;
    if (reader_.accept("unroll")) return LoopKind::Unrolled;
    if (!reader_.accept("bind")) return LoopKind::Serial;

    Token axis = at;
    axis.text = name;
    if (reader_.accept("(")) {
      axis = reader_.take();
      reader_.expect(")");
    }
    const std::optional<ThreadAxis> found = find_thread_axis(axis.text);
    if (!found) fail_syntax(axis, fmt::format("there is no thread axis '{}'", axis.text));
    thread = *found;
    return LoopKind::ThreadIndex;
  }

  /// `if likely(i < n) { .. } else { .. }`
  Stmt parse_if() {
    const bool likely = reader_.accept("likely");
    if (likely) reader_.expect("(");
    const Expr condition = build_typed(read_expression(reader_), names_, kBoolType);
    if (likely) reader_.expect(")");
    const Stmt then_body = parse_braces();
    Stmt else_body;
    if (reader_.accept("else")) else_body = parse_braces();
    return If::make(condition, then_body, else_body, likely);
  }

  /// `check A[i] < n #0`
  Stmt parse_check() {
    const Expr index = build_typed(read_sum(reader_), names_, kIndexType);
    reader_.expect("<");
    const Expr extent = build_typed(read_sum(reader_), names_, kIndexType);
    reader_.expect("#");
    return Check::make(index, extent,
                       static_cast<int>(reader_.expect_integer("the number of a check")));
  }

  /// `shuffle 16 of 32: s[0] = own[0]` or `shuffle lane 31 - t of 32: s[0] = own[0]`
  Stmt parse_shuffle() {
    const Token at = reader_.peek();
    Expr lane;
    int64_t distance = 0;
    if (reader_.accept("lane")) {
      lane = build_typed(read_sum(reader_), names_, kIndexType);
    } else {
      distance = reader_.expect_integer("how far behind a thread is");
    }
    reader_.expect("of");
    const int64_t width = reader_.expect_integer("how many threads are together");
    if (width < 1 || width > kWarp || (width & (width - 1)) != 0 || distance > kWarp) {
      fail_syntax(at, fmt::format("a shuffle is among 1, 2, 4 .. {} threads", kWarp));
    }
    const auto [access, value] = parse_one_element();
    return Shuffle::make(static_cast<int>(distance), lane, static_cast<int>(width), access.buffer,
                         access.indices, value);
  }

  /// `atomic max: C[X[i]] = 5`
  Stmt parse_atomic() {
    const Token at = reader_.take();
    const std::optional<Operator> op = language::find_operator(at.text);
    if (op != Operator::Add && op != Operator::Min && op != Operator::Max) {
      fail_syntax(at, fmt::format("'{}' is not done in one piece; add, min and max are", at.text));
    }
    const auto [access, value] = parse_one_element();
    return Atomic::make(*op, access.buffer, access.indices, value);
  }

  /// `: C[i] = v`
  std::pair<Access, Expr> parse_one_element() {
    reader_.expect(":");
    const Token at = reader_.peek();
    reader_.expect_name("the name of a buffer");
    Access access = build_access(read_access(reader_, at), names_);
    for (const Expr& index : access.indices) {
      if (index->type.lanes > 1) fail_syntax(at, "it is done to one element");
    }
    reader_.expect("=");
    const Type type{access.buffer->type, 1};
    Expr value = build_typed(read_expression(reader_), names_, type);
    return {std::move(access), std::move(value)};
  }

  /// `await 1`
  Stmt parse_await() {
    const Token at = reader_.peek();
    const int64_t groups = reader_.expect_integer("how many groups need not have arrived");
    if (groups < 0 || groups > kMostGroups)
      fail_syntax(at, fmt::format("0 to {} groups are under way", kMostGroups));
    return Await::make(static_cast<int>(groups));
  }

  /// `tensorize x86.fma.f32 { .. }`
  Stmt parse_tensorize() {
    const Token at = reader_.take();
    const auto intrinsic = language::find_intrinsic(at.text);
    if (!intrinsic) fail_syntax(at, fmt::format("there is no intrinsic '{}'", at.text));
    return Tensorize::make(*intrinsic, parse_braces());
  }

  /// `prefetch A[i + 64]`
  Stmt parse_prefetch(FetchInto into) {
    const Token at = reader_.peek();
    reader_.expect_name("the name of a buffer");
    const Access access = build_access(read_access(reader_, at), names_);
    for (const Expr& index : access.indices) {
      if (index->type.lanes > 1) fail_syntax(at, "a prefetch is of one element");
    }
    return Prefetch::make(access.buffer, access.indices, into);
  }

  /// `C[ramp(0, 1, 8) where p] = v`
  Stmt parse_store() {
    const Token at = reader_.peek();
    reader_.expect_name("a statement");
    const Access access = build_access(read_access(reader_, at), names_);
    int lanes = 1;
    for (const Expr& index : access.indices)
      lanes = std::max(lanes, index->type.lanes);
    reader_.expect("=");
    const Syntax syntax = read_expression(reader_);
    const DType type = access.buffer->type;
    const Expr value = build_expression(syntax, names_, type);
    if (value->type != (Type{type, lanes})) {
      fail_syntax(syntax.at, fmt::format("{} holds {}, but is stored {} of {} lanes where {} fit",
                                         access.buffer->name, type, value->type.element,
                                         value->type.lanes, lanes));
    }
    return Store::make(access.buffer, access.indices, value, access.predicate);
  }

  /// `#0: stage 1, tensor 0, dimension 2`, in order.
  void parse_checks() {
    while (reader_.accept("#")) {
      const Token at = reader_.peek();
      const int64_t number = reader_.expect_integer("the number of a check");
      if (number != static_cast<int64_t>(kernel_.checks.size())) {
        fail_syntax(at, fmt::format("expected check #{}", kernel_.checks.size()));
      }
      RuntimeCheck check;
      reader_.expect(":");
      check.stage = parse_field("stage");
      reader_.expect(",");
      check.tensor = parse_field("tensor");
      reader_.expect(",");
      check.dimension = parse_field("dimension");
      kernel_.checks.push_back(check);
    }
  }

  int32_t parse_field(std::string_view name) {
    reader_.expect(name);
    const bool negative = reader_.accept("-");
    const auto value = static_cast<int32_t>(reader_.expect_integer("a number"));
    return negative ? -value : value;
  }

  TokenReader reader_;
  Kernel kernel_;
  NameScope names_;
  std::vector<std::optional<bool>> outputs_;
  bool sizes_are_listed_ = false;
  int depth_ = 0;
};

}  // namespace

Kernel parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace kiln::ir

// Writes kernels as text that a person reads and parse.cc reads back: as few parentheses as
// precedence allows, types of constants only where the place does not give them.
#include "compiler/ir/print.h"

#include <iterator>

#include "compiler/ir/dispatch.h"
#include "compiler/ir/names.h"
#include "compiler/ir/text_rules.h"

namespace kiln::ir {
namespace {

/// How tightly an expression's outermost operator binds; higher is tighter.
enum Precedence : int {
  kOr = 1,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kAtom,
};

int precedence_of(Operator op) {
  switch (op) {
    case Operator::Or: return kOr;
    case Operator::And: return kAnd;
    case Operator::BitOr: return kBitOr;
    case Operator::BitXor: return kBitXor;
    case Operator::BitAnd: return kBitAnd;
    case Operator::Equal:
    case Operator::NotEqual: return kEquality;
    case Operator::Less:
    case Operator::LessEqual:
    case Operator::Greater:
    case Operator::GreaterEqual: return kRelation;
    case Operator::ShiftLeft:
    case Operator::ShiftRight: return kShift;
    case Operator::Add:
    case Operator::Sub: return kSum;
    case Operator::Mul:
    case Operator::Div: return kProduct;
    default: return kAtom;
  }
}

std::string_view prefix_of(Operator op) {
  switch (op) {
    case Operator::Negative: return "-";
    case Operator::Not: return "!";
    case Operator::BitNot: return "~";
    default: return "";
  }
}

bool is_literal(const Expr& expr) { return as<IntImm>(expr) || as<FloatImm>(expr); }

/// Writes one expression. `expected` is the element type the place asks for, if it does: a constant
/// of that type needs no type of its own. parse.cc infers types by the same rules.
class ExprPrinter {
 public:
  ExprPrinter(Names& names, std::string& out) : names_(names), out_(out) {}

  void print(const Expr& expr, Expected expected, int least = 0) {
    const int own = precedence(expr);
    if (own < least) out_ += '(';
    dispatch(*expr, [&](const auto& node) { write(node, expected); });
    if (own < least) out_ += ')';
  }

  void print_list(const std::vector<Expr>& list, Expected expected) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(list[i], expected);
    }
  }

  void print_access(const BufferRef& buffer, const std::vector<Expr>& indices,
                    const Expr& predicate) {
    out_ += names_.of(buffer);
    out_ += '[';
    print_list(indices, DType::Int64);
    if (predicate) {
      out_ += indices.empty() ? "where " : " where ";
      print(predicate, DType::Bool);
    }
    out_ += ']';
  }

 private:
  static int precedence(const Expr& expr) {
    if (const Binary* binary = as<Binary>(expr)) return precedence_of(binary->op);
    if (const Call* call = as<Call>(expr)) return prefix_of(call->op).empty() ? kAtom : kUnary;
    return kAtom;
  }

  void write(const IntImm& imm, Expected expected) { out_ += literal_text(imm, expected); }
  void write(const FloatImm& imm, Expected expected) { out_ += literal_text(imm, expected); }
  void write(const Var& var, Expected) { out_ += names_.of(VarRef(&var)); }

  void write(const Binary& node, Expected expected) {
    const std::string_view infix = language::row_of(node.op).infix;
    const std::vector<Expected> wanted = expected_operands(node.op, {node.a, node.b}, expected);
    if (infix.empty()) {
      write_call(language::row_of(node.op).spelling, {node.a, node.b}, wanted);
      return;
    }
    const int own = precedence_of(node.op);
    const bool relation = own == kEquality || own == kRelation;
    // Operators associate to the left, but comparisons do not chain.
    print(node.a, wanted[0], relation ? own + 1 : own);
    const bool tight = own == kProduct;
    if (!tight) out_ += ' ';
    out_ += infix;
    if (!tight) out_ += ' ';
    print(node.b, wanted[1], own + 1);
  }

  void write(const Call& node, Expected expected) {
    const std::string_view prefix = prefix_of(node.op);
    const std::vector<Expected> wanted = expected_operands(node.op, node.args, expected);
    // `-5` is a constant, so the negative of one is spelled out.
    if (prefix.empty() || is_literal(node.args[0])) {
      write_call(language::row_of(node.op).spelling, node.args, wanted);
      return;
    }
    out_ += prefix;
    print(node.args[0], wanted[0], kUnary);
  }

  void write(const Cast& node, Expected) {
    write_call(name_of(node.type.element), {node.value}, {std::nullopt});
  }

  void write(const Load& node, Expected) {
    print_access(node.buffer, node.indices, node.predicate);
  }

  void write(const TensorRead& node, Expected) {
    fmt::format_to(std::back_inserter(out_), "stage{}.v{}[", node.stage, node.output);
    print_list(node.indices, DType::Int64);
    out_ += ']';
  }

  void write(const Reduce& node, Expected expected) {
    out_ += node.how.combiner ? language::row_of(*node.how.combiner).spelling
                              : std::string_view(node.how.reducer->name);
    if (node.how.values() > 1) {
      fmt::format_to(std::back_inserter(out_), ".v{}", node.how.output);
    }
    out_ += '[';
    for (size_t i = 0; i < node.axes.size(); ++i) {
      fmt::format_to(std::back_inserter(out_), "{}{}", i > 0 ? ", " : "", names_.of(node.axes[i]));
    }
    out_ += "](";
    for (size_t i = 0; i < node.sources.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(node.sources[i], node.how.combiner ? expected : node.sources[i]->type.element);
    }
    if (node.condition) {
      out_ += ", where=";
      print(node.condition, DType::Bool);
    }
    for (size_t i = 0; i < node.init.size(); ++i) {
      out_ += i == 0 ? ", init=" : ", ";
      print(node.init[i], node.init[i]->type.element);
    }
    out_ += ')';
  }

  void write(const Ramp& node, Expected) {
    out_ += Ramp::kWord;
    out_ += '(';
    print(node.base, DType::Int64);
    out_ += ", ";
    print(node.stride, DType::Int64);
    fmt::format_to(std::back_inserter(out_), ", {})", node.lanes);
  }

  void write(const Broadcast& node, Expected expected) {
    out_ += Broadcast::kWord;
    out_ += '(';
    print(node.value, expected);
    fmt::format_to(std::back_inserter(out_), ", {})", node.lanes);
  }

  void write(const VectorReduce& node, Expected expected) {
    fmt::format_to(std::back_inserter(out_), "reduce_{}(",
                   language::row_of(node.combiner).spelling);
    const std::vector<Expected> wanted =
        expected_operands(language::row_of(node.combiner).op, {node.start, node.vector}, expected);
    print(node.start, wanted[0]);
    out_ += ", ";
    print(node.vector, wanted[1]);
    out_ += node.reassociate ? ", reassociate)" : ")";
  }

  void write(const Dot& node, Expected expected) {
    write_call(Dot::kWord, {node.start, node.a, node.b}, {expected, std::nullopt, std::nullopt});
  }

  void write_call(std::string_view name, const std::vector<Expr>& args,
                  const std::vector<Expected>& wanted) {
    out_ += name;
    out_ += '(';
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(args[i], wanted[i]);
    }
    out_ += ')';
  }

  Names& names_;
  std::string& out_;
};

class StmtPrinter {
 public:
  void print(const Kernel& kernel) {
    write_signature(kernel);
    ++depth_;
    write_workspace(kernel);
    for (const BufferRef& buffer : kernel.nontemporal)
      line("nontemporal {}", names_.of(buffer));
    write_sequence(kernel.body);
    --depth_;
    line("}}");
    for (size_t i = 0; i < kernel.checks.size(); ++i) {
      const RuntimeCheck& check = kernel.checks[i];
      line("#{}: stage {}, tensor {}, dimension {}", i, check.stage, check.tensor, check.dimension);
    }
  }

  /// The statement at a place where a block's statements stand.
  void write_sequence(const Stmt& stmt) {
    const Block* block = as<Block>(stmt);
    if (block == nullptr) {
      write(stmt);
      return;
    }
    for (size_t i = 0; i < block->body.size(); ++i) {
      // An allocation holds for the rest of its block: one that ends earlier gets braces.
      const bool ends_early = as<Allocate>(block->body[i]) && i + 1 < block->body.size();
      if (ends_early) open("{{");
      write(block->body[i]);
      if (ends_early) close();
    }
  }

  std::string take() { return std::move(out_); }
  PrintedKernel take_with_lines() { return {std::move(out_), std::move(first_lines_)}; }

 private:
  void write(const Stmt& stmt) {
    first_lines_.try_emplace(stmt.get(), lines_ + 1);
    dispatch(*stmt, [this](const auto& node) { write_node(node); });
  }

  void write_node(const Block& block) { write_sequence(Stmt(&block)); }

  void write_node(const For& loop) {
    const std::string extent = text(loop.extent, DType::Int64);
    const bool thread = loop.loop_kind == LoopKind::ThreadIndex;
    const std::string& name = thread ? names_.enter_thread(loop.var) : names_.of(loop.var);
    open("for {} in 0..{}{} {{", name, extent, kind_suffix(loop, name));
    write_sequence(loop.body);
    close();
    if (thread) names_.leave_thread(loop.var);
  }

  void write_node(const If& node) {
    const std::string condition = text(node.condition, DType::Bool);
    if (node.likely) {
      open("if likely({}) {{", condition);
    } else {
      open("if {} {{", condition);
    }
    write_sequence(node.then_body);
    if (node.else_body) {
      --depth_;
      open("}} else {{");
      write_sequence(node.else_body);
    }
    close();
  }

  void write_node(const Store& store) {
    std::string access;
    ExprPrinter(names_, access).print_access(store.buffer, store.indices, store.predicate);
    line("{} = {}", access, text(store.value, store.buffer->type));
  }

  void write_node(const Atomic& node) {
    std::string access;
    ExprPrinter(names_, access).print_access(node.buffer, node.indices, nullptr);
    line("{} {}: {} = {}", Atomic::kWord, language::row_of(node.op).spelling, access,
         text(node.value, node.buffer->type));
  }

  void write_node(const Allocate& allocate) {
    const Buffer& buffer = *allocate.buffer;
    line("allocate {} scope({}){}", declaration(allocate.buffer), scope_name(buffer.scope),
         buffer.swizzle == 0 ? "" : fmt::format(" swizzle({})", buffer.swizzle));
    write_sequence(allocate.body);
  }

  void write_node(const Check& check) {
    line("check {} < {} #{}", text(check.index, DType::Int64, kSum),
         text(check.extent, DType::Int64, kSum), check.check);
  }

  void write_node(const Barrier&) { line("{}", Barrier::kWord); }

  void write_node(const Shuffle& node) {
    std::string access;
    ExprPrinter(names_, access).print_access(node.buffer, node.indices, nullptr);
    const std::string from = node.lane ? "lane " + text(node.lane, DType::Int64, kSum)
                                       : fmt::format("{}", node.distance);
    line("{} {} of {}: {} = {}", Shuffle::kWord, from, node.width, access,
         text(node.value, node.buffer->type));
  }

  void write_node(const Background& node) {
    open("{} {{", Background::kWord);
    write_sequence(node.body);
    close();
  }

  void write_node(const Await& node) { line("{} {}", Await::kWord, node.groups); }

  void write_node(const Tensorize& node) {
    open("{} {} {{", Tensorize::kWord, language::row_of(node.intrinsic).spelling);
    write_sequence(node.body);
    close();
  }

  void write_node(const MultiplyTiles& node) {
    open("{} {{", MultiplyTiles::kWord);
    write_sequence(node.body);
    close();
  }

  void write_node(const Prefetch& node) {
    std::string access;
    ExprPrinter(names_, access).print_access(node.buffer, node.indices, nullptr);
    line("{} {}", node.into == FetchInto::L2 ? Prefetch::kWordOfL2 : Prefetch::kWord, access);
  }

  static std::string kind_suffix(const For& loop, std::string_view name) {
    switch (loop.loop_kind) {
      case LoopKind::Serial: return "";
      case LoopKind::Host: return " host";
      case LoopKind::Parallel: return " parallel";
      case LoopKind::Vectorized: return " vectorize";
      case LoopKind::Unrolled: return " unroll";
      case LoopKind::ThreadIndex: break;
    }
    if (name == name_of(loop.thread)) return " bind";
    return fmt::format(" bind({})", name_of(loop.thread));
  }

  static std::string_view scope_name(Scope scope) {
    switch (scope) {
      case Scope::Global: return "global";
      case Scope::Shared: return "shared";
      case Scope::Warp: return "warp";
      case Scope::Local: return "local";
    }
    return "";
  }

  std::string declaration(const BufferRef& buffer) {
    std::string result = fmt::format("{}: {}[", names_.of(buffer), buffer->type);
    ExprPrinter printer(names_, result);
    printer.print_list(buffer->shape, DType::Int64);
    result += ']';
    if (!buffer->strides.empty()) {
      result += " strides[";
      printer.print_list(buffer->strides, DType::Int64);
      result += ']';
    }
    return result;
  }

  void write_signature(const Kernel& kernel) {
    std::string sizes;
    for (const VarRef& size : kernel.sizes) {
      fmt::format_to(std::back_inserter(sizes), "{}{}", sizes.empty() ? "" : ", ", names_.of(size));
    }
    std::string parameters;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const BufferRef& parameter = kernel.parameters[i];
      if (i > 0) parameters += ", ";
      parameters += declaration(parameter);
      const bool stored = stores_to(kernel.body, parameter);
      if (stored != kernel.is_output[i]) parameters += kernel.is_output[i] ? " output" : " input";
    }
    const bool implied = sizes_of(kernel.parameters) == kernel.sizes;
    line("fn {}{}({}) {{", mangled(kernel.name), implied ? "" : fmt::format("[{}]", sizes),
         parameters);
  }

  void write_workspace(const Kernel& kernel) {
    for (const Kernel::WorkspaceBuffer& entry : kernel.workspace) {
      line("workspace {} at {}{}", declaration(entry.buffer),
           text(entry.offset_bytes, DType::Int64), entry.per_thread ? " per_thread" : "");
    }
    if (!kernel.workspace_bytes) return;
    line("workspace bytes {}, {} per_thread", text(kernel.workspace_bytes, DType::Int64),
         text(kernel.workspace_bytes_per_thread, DType::Int64));
  }

  std::string text(const Expr& expr, Expected expected, int least = 0) {
    std::string result;
    ExprPrinter(names_, result).print(expr, expected, least);
    return result;
  }

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
    ++lines_;
  }
  template <typename... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }

  Names names_;
  std::string out_;
  size_t depth_ = 0;
  int lines_ = 0;
  std::unordered_map<const Node*, int> first_lines_;
};

}  // namespace

std::string print(const Kernel& kernel) {
  StmtPrinter printer;
  printer.print(kernel);
  return printer.take();
}

PrintedKernel print_with_lines(const Kernel& kernel) {
  StmtPrinter printer;
  printer.print(kernel);
  return printer.take_with_lines();
}

std::string print(const Stmt& stmt) {
  StmtPrinter printer;
  printer.write_sequence(stmt);
  return printer.take();
}

std::string print(const Expr& expr) {
  Names names;
  std::string out;
  ExprPrinter(names, out).print(expr, std::nullopt);
  return out;
}

}  // namespace kiln::ir

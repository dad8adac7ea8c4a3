// Reads what print() writes. Names are those of the text: of values and views any will do, and in
// the program they are numbered in the order in which they are made.
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ir/parse_expr.h"
#include "compiler/tile/result_type.h"
#include "compiler/tile/text.h"
#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using ir::fail_syntax;
using ir::Token;

constexpr int kMaxDepth = 100;  // of loops

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}

  Program run() {
    reader_.expect("tile");
    program_.name = reader_.expect_name("the name of the program");
    if (reader_.accept("[")) read_list("]", [&] { add_size(); });
    reader_.expect("(");
    read_list(")", [&] { add_parameter(); });
    reader_.expect("{");
    reader_.expect("blocks");
    do {
      read_axis();
    } while (reader_.accept(","));
    program_.block_axes = static_cast<uint32_t>(program_.axes.size());
    while (reader_.accept("view"))
      add_view();
    program_.body = read_body(nullptr);
    if (reader_.peek().kind != Token::Kind::End) {
      fail_syntax(reader_.peek(),
                  fmt::format("expected the end, but got '{}'", reader_.peek().text));
    }
    verify(program_);
    return std::move(program_);
  }

 private:
  template <typename Read>
  void read_list(std::string_view end, const Read& read) {
    while (!reader_.accept(end)) {
      read();
      if (!reader_.is(end)) reader_.expect(",");
    }
  }

  template <typename Names>
  void declare(Names& names, const Token& at, const std::string& name, uint32_t number) {
    if (!names.emplace(name, number).second)
      fail_syntax(at, fmt::format("'{}' is named twice", name));
  }

  template <typename Names>
  uint32_t find(const Names& names, std::string_view what) {
    const Token at = reader_.peek();
    const std::string name = reader_.expect_name(what);
    const auto found = names.find(name);
    if (found == names.end()) fail_syntax(at, fmt::format("there is no '{}' here", name));
    return found->second;
  }

  void add_size() {
    const Token at = reader_.peek();
    program_.sizes.push_back(reader_.expect_name("the name of a size"));
    declare(sizes_, at, program_.sizes.back(), static_cast<uint32_t>(program_.sizes.size() - 1));
  }

  Extent read_extent() {
    if (reader_.peek().kind == Token::Kind::Integer)
      return {.constant = reader_.expect_integer("an extent"), .size = -1};
    return {.constant = 0, .size = static_cast<int32_t>(find(sizes_, "an extent"))};
  }

  std::vector<int64_t> read_shape() {
    std::vector<int64_t> shape;
    reader_.expect("[");
    read_list("]", [&] { shape.push_back(reader_.expect_integer("an extent")); });
    return shape;
  }

  DType read_type() {
    const Token at = reader_.take();
    const std::optional<DType> type = find_dtype(at.text);
    if (!type) fail_syntax(at, fmt::format("there is no type '{}'", at.text));
    return *type;
  }

  void add_parameter() {
    const Token at = reader_.peek();
    Parameter parameter;
    parameter.name = reader_.expect_name("the name of a parameter");
    reader_.expect(":");
    parameter.type = read_type();
    reader_.expect("[");
    read_list("]", [&] { parameter.shape.push_back(read_extent()); });
    if (reader_.accept("rows")) {
      reader_.expect("by");
      parameter.row_multiple = reader_.expect_integer("what rows begin at multiples of");
    }
    parameter.is_output = reader_.accept("output");
    declare(parameters_, at, parameter.name, static_cast<uint32_t>(program_.parameters.size()));
    program_.parameters.push_back(std::move(parameter));
  }

  /// `i: n by 128`
  AxisId read_axis() {
    const Token at = reader_.peek();
    Axis axis;
    axis.name = reader_.expect_name("the name of an axis");
    reader_.expect(":");
    axis.extent = read_extent();
    reader_.expect("by");
    axis.step = reader_.expect_integer("the step of an axis");
    const auto id = static_cast<AxisId>(program_.axes.size());
    declare(axes_, at, axis.name, id);
    program_.axes.push_back(std::move(axis));
    return id;
  }

  void add_view() {
    const Token at = reader_.peek();
    const std::string name = reader_.expect_name("the name of a view");
    reader_.expect("=");
    View view;
    view.parameter = find(parameters_, "the name of a parameter");
    view.tile = read_shape();
    view.order.resize(view.tile.size());
    std::iota(view.order.begin(), view.order.end(), 0);
    if (reader_.accept("order")) {
      view.order.clear();
      for (const int64_t dimension : read_shape())
        view.order.push_back(static_cast<uint32_t>(dimension));
    }
    declare(views_, at, name, static_cast<ViewId>(program_.views.size()));
    program_.views.push_back(std::move(view));
  }

  /// Up to the closing brace; `yields` where it is that of a loop.
  std::vector<Instruction> read_body(std::vector<ValueId>* yields) {
    if (++depth_ > kMaxDepth) fail_syntax(reader_.peek(), "loops are nested too deeply");
    std::vector<Instruction> body;
    while (!reader_.is("}") && !reader_.is("yield"))
      body.push_back(read_instruction());
    if (yields != nullptr) {
      reader_.expect("yield");
      *yields = read_values();
    }
    reader_.expect("}");
    --depth_;
    return body;
  }

  std::vector<ValueId> read_values() {
    std::vector<ValueId> values;
    do {
      values.push_back(find(values_, "a value"));
    } while (reader_.accept(","));
    return values;
  }

  Instruction read_instruction() {
    if (reader_.accept("store")) {
      Store store;
      read_place(store.view, store.at);
      reader_.expect("=");
      return {.what = store, .operands = read_values(), .results = {}};
    }
    std::vector<Token> names;
    do {
      names.push_back(reader_.peek());
      reader_.expect_name("store, yield or the name of a value");
    } while (reader_.accept(","));
    reader_.expect("=");
    return read_value(names);
  }

  Instruction read_value(const std::vector<Token>& names) {
    if (reader_.accept("for")) return read_for(names);
    if (names.size() != 1) fail_syntax(names[1], "only a loop has several results");
    if (reader_.accept("constant")) return read_constant(names[0]);
    if (reader_.accept("size")) {
      TileType type{DType::Int32, read_shape()};
      const SizeOf size{find(sizes_, "the name of a size")};
      return made(names[0], {.what = size, .operands = {}, .results = {}}, type);
    }
    if (reader_.accept("places")) {
      TileType type{DType::Int32, read_shape()};
      const Places places{find(axes_, "the name of an axis")};
      return made(names[0], {.what = places, .operands = {}, .results = {}}, type);
    }
    if (reader_.accept("load")) {
      Load load;
      read_place(load.view, load.at);
      const View& view = program_.views[load.view];
      return made(names[0], {.what = load, .operands = {}, .results = {}},
                  {program_.parameters[view.parameter].type, view.tile});
    }
    if (reader_.accept("window")) return read_window(names[0]);
    if (reader_.accept("cast")) {
      TileType type{read_type(), {}};
      std::vector<ValueId> operands = read_values();
      type.shape = program_.values[operands[0]].shape;
      return made(names[0], {.what = Cast{}, .operands = std::move(operands), .results = {}}, type);
    }
    if (reader_.accept("reshape")) return read_shaped(names[0], Reshape{});
    if (reader_.accept("broadcast")) return read_shaped(names[0], Broadcast{});
    const Token at = reader_.take();
    Instruction instruction;
    if (at.text == "mma" || at.text == "mma_tf32" || at.text == "mma_fast") {
      instruction.what = Mma{.in_tf32 = at.text == "mma_tf32", .is_fast = at.text == "mma_fast"};
    } else if (at.text == "reduce") {
      instruction.what = read_reduce();
    } else if (const auto function = language::find_operator(at.text)) {
      instruction.what = Apply{*function};
    } else {
      fail_syntax(at, fmt::format("there is no instruction '{}'", at.text));
    }
    instruction.operands = read_values();
    const TileType type = result_type(program_, instruction);
    return made(names[0], std::move(instruction), type);
  }

  Reduce read_reduce() {
    const Token at = reader_.take();
    const auto combiner = language::find_combiner(at.text);
    if (!combiner) fail_syntax(at, fmt::format("there is no reducer '{}'", at.text));
    return {*combiner, static_cast<uint32_t>(reader_.expect_integer("a dimension"))};
  }

  template <typename What>
  Instruction read_shaped(const Token& name, What what) {
    TileType type{DType::Float32, read_shape()};
    std::vector<ValueId> operands = read_values();
    type.element = program_.values[operands[0]].element;
    return made(name, {.what = what, .operands = std::move(operands), .results = {}}, type);
  }

  Instruction read_constant(const Token& name) {
    TileType type{read_type(), {}};
    type.shape = read_shape();
    const bool is_negative = reader_.accept("-");
    const Token at = reader_.take();
    double number = 0;
    if (at.text == "inf") {
      number = std::numeric_limits<double>::infinity();
    } else if (at.text == "nan") {
      number = std::numeric_limits<double>::quiet_NaN();
    } else if (at.kind == Token::Kind::Integer || at.kind == Token::Kind::Float) {
      number = std::stod(at.text);
    } else {
      fail_syntax(at, fmt::format("expected a number, but got '{}'", at.text));
    }
    const Constant constant{is_negative ? -number : number};
    return made(name, {.what = constant, .operands = {}, .results = {}}, type);
  }

  /// `window A[b, y*2 + ry - 1, c] over b, y by c`
  Instruction read_window(const Token& name) {
    Window window;
    window.parameter = find(parameters_, "the name of a parameter");
    reader_.expect("[");
    read_list("]", [&] { window.indices.push_back(read_index()); });
    reader_.expect("over");
    TileType type{program_.parameters[window.parameter].type, {1}};
    do {
      window.rows.push_back(find(axes_, "the name of an axis"));
      type.shape[0] *= program_.axes[window.rows.back()].step;
    } while (reader_.accept(","));
    reader_.expect("by");
    window.along = find(axes_, "the name of an axis");
    type.shape.push_back(program_.axes[window.along].step);
    return made(name, {.what = std::move(window), .operands = {}, .results = {}}, type);
  }

  Index read_index() {
    Index index;
    int64_t sign = reader_.accept("-") ? -1 : 1;
    while (true) {
      if (reader_.peek().kind == Token::Kind::Integer) {
        index.offset += sign * reader_.expect_integer("a number");
      } else {
        Term term{find(axes_, "the name of an axis"), sign};
        if (reader_.accept("*")) term.factor *= reader_.expect_integer("the factor of an axis");
        index.terms.push_back(term);
      }
      if (!reader_.is("+") && !reader_.is("-")) return index;
      sign = reader_.accept("+") ? 1 : -1;
      if (sign < 0) reader_.expect("-");
    }
  }

  /// `for ry: 3 by 1, k: 512 by 64 with t2 = t0 { .. }`; `for j: 512 by 64 from t1 until t2 with
  /// ..`
  Instruction read_for(const std::vector<Token>& names) {
    Instruction instruction;
    For loop;
    do {
      loop.axes.push_back(read_axis());
    } while (reader_.accept(","));
    if (reader_.accept("from")) loop.from = find(values_, "a value");
    if (reader_.accept("until")) loop.until = find(values_, "a value");
    reader_.expect("with");
    std::vector<TileType> types;
    std::vector<Token> carried;
    do {
      carried.push_back(reader_.peek());
      reader_.expect_name("the name of a value");
      reader_.expect("=");
      instruction.operands.push_back(find(values_, "a value"));
      types.push_back(program_.values[instruction.operands.back()]);
    } while (reader_.accept(","));
    if (names.size() != carried.size())
      fail_syntax(names[0], "a loop has as many results as it carries values");
    for (const Token& name : names)
      instruction.results.push_back(add_value(name, types[instruction.results.size()], false));
    const auto outside = values_;
    for (const Token& name : carried)
      loop.carried.push_back(add_value(name, types[loop.carried.size()], true));
    reader_.expect("{");
    loop.body = read_body(&loop.yields);
    values_ = outside;
    for (size_t i = 0; i < names.size(); ++i)
      declare(values_, names[i], names[i].text, instruction.results[i]);
    instruction.what = std::move(loop);
    return instruction;
  }

  void read_place(ViewId& view, std::vector<AxisId>& at) {
    view = find(views_, "the name of a view");
    reader_.expect("[");
    read_list("]", [&] { at.push_back(find(axes_, "the name of an axis")); });
  }

  Instruction made(const Token& name, Instruction instruction, const TileType& type) {
    instruction.results.push_back(add_value(name, type, true));
    return instruction;
  }

  ValueId add_value(const Token& name, const TileType& type, bool is_visible) {
    const auto id = static_cast<ValueId>(program_.values.size());
    program_.values.push_back(type);
    if (is_visible) declare(values_, name, name.text, id);
    return id;
  }

  using Names = std::map<std::string, uint32_t, std::less<>>;
  ir::TokenReader reader_;
  Program program_;
  Names sizes_;
  Names parameters_;
  Names axes_;
  Names views_;
  Names values_;
  int depth_ = 0;
};

}  // namespace

Program parse(std::string_view text) { return Parser(text).run(); }

}  // namespace kiln::tile

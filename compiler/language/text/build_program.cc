// Programs of a kernel file as they are sent: names become numbers of values, whatever the order of
// the lines. What is wrong with a graph itself (a cycle, an update of what is no parameter) is said
// where it is defined, for all clients alike.
//
//   v, change = step(u)    ->    ProgramNode{definition of step, inputs [u], outputs [v, change]}
#include <algorithm>
#include <map>

#include "compiler/language/suggest.h"
#include "compiler/language/text/build_text.h"
#include "compiler/language/wire/decode.h"

namespace kiln::language::syntax {
namespace {

using Named = ProgramLine::Named;

class ProgramBuilder {
 public:
  ProgramBuilder(const Source& source, const ProgramText& text,
                 const std::vector<TextKernel>& kernels)
      : source_(source), text_(text), kernels_(kernels) {}

  v1::Program run() {
    program_.set_name(std::string(text_.name));
    for (const ProgramLine& line : text_.lines)
      add_values(line);
    for (const ProgramLine& line : text_.lines)
      add_line(line);
    return std::move(program_);
  }

 private:
  /// The values that a line brings in; an update and a list of outputs bring none.
  void add_values(const ProgramLine& line) {
    static const std::map<std::string_view, v1::ValueKind> kKinds = {
        {"", v1::VALUE_KIND_UNSPECIFIED}, {"input", v1::VALUE_KIND_INPUT},
        {"data", v1::VALUE_KIND_BATCH},   {"parameter", v1::VALUE_KIND_PARAMETER},
        {"step", v1::VALUE_KIND_STEP},
    };
    const auto kind = kKinds.find(line.word);
    if (kind == kKinds.end()) return;
    for (const Named& name : line.names) {
      const auto id = static_cast<uint32_t>(program_.values_size());
      if (!values_.emplace(name.text, id).second) {
        source_.refuse(name.place, "program {} makes {} twice", text_.name, name.text);
      }
      v1::ProgramValue& value = *program_.add_values();
      value.set_name(std::string(name.text));
      value.set_kind(kind->second);
    }
  }

  void add_line(const ProgramLine& line) {
    if (line.word.empty()) {
      is_gradient(line) ? add_gradient(line) : add_node(line);
    } else if (line.word == "update") {
      if (line.names.size() > 1) {
        source_.refuse(line.names[1].place, "an update is of one parameter; write a line for each");
      }
      v1::ProgramUpdate& update = *program_.add_updates();
      update.set_parameter(value_of(line.names[0]));
      update.set_value(value_of(line.arguments[0]));
    } else if (line.word == "until") {
      if (program_.has_until() || line.names.size() > 1) {
        source_.refuse(line.place, "program {} has several values that it runs until", text_.name);
      }
      program_.set_until(value_of(line.names[0]));
    } else if (line.word == "output" || line.word == "report") {
      auto& list =
          line.word == "output" ? *program_.mutable_outputs() : *program_.mutable_reports();
      for (const Named& name : line.names)
        list.Add(value_of(name));
    }
  }

  v1::ProgramNode& new_node(const ProgramLine& line) {
    v1::ProgramNode& node = *program_.add_nodes();
    node.set_name(std::string(line.names[0].text));
    for (const Named& name : line.arguments)
      node.add_inputs(value_of(name));
    for (const Named& name : line.names)
      node.add_outputs(value_of(name));
    node.set_file(source_.file());
    node.set_line(static_cast<uint32_t>(source_.line_of(line.place)));
    return node;
  }

  /// The word is free for a kernel of the file.
  bool is_gradient(const ProgramLine& line) const {
    return line.kernel.text == "gradient" &&
           std::ranges::none_of(kernels_, [](const TextKernel& kernel) {
             return kernel.kernel.names.kernel == "gradient";
           });
  }

  void add_gradient(const ProgramLine& line) {
    const size_t parameters = line.arguments.empty() ? 0 : line.arguments.size() - 1;
    if (parameters == 0) {
      source_.refuse(line.kernel.place,
                     "gradient takes a number and what it is differentiated with respect to, as in "
                     "slope = gradient(loss, w)");
    }
    if (parameters != line.names.size()) {
      source_.refuse(line.kernel.place,
                     "gradient gives {} value{}, one for each of {} behind {}, but has {} name{} "
                     "here",
                     parameters, parameters == 1 ? "" : "s", parameters, line.arguments[0].text,
                     line.names.size(), line.names.size() == 1 ? "" : "s");
    }
    new_node(line).set_gradient(true);
  }

  void add_node(const ProgramLine& line) {
    const TextKernel& kernel = kernel_of(line.kernel);
    const Definition& definition = kernel.kernel.definition;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    for (const TensorId id : definition.parameters) {
      (definition.is_output(id) ? outputs : inputs)
          .push_back(kernel.kernel.names.tensor_name(definition, id));
    }
    expect_count(line.kernel, "takes", inputs, line.arguments.size());
    expect_count(line.kernel, "gives", outputs, line.names.size());
    const uint32_t number = definition_of(kernel);
    new_node(line).set_definition(number);
  }

  void expect_count(const Named& kernel, std::string_view does,
                    const std::vector<std::string>& names, size_t found) const {
    if (names.size() == found) return;
    source_.refuse(kernel.place, "{} {} {} value{} ({}), but has {} here", kernel.text, does,
                   names.size(), names.size() == 1 ? "" : "s", fmt::join(names, ", "), found);
  }

  /// Several nodes share one definition.
  uint32_t definition_of(const TextKernel& kernel) {
    const auto [known, is_new] = definitions_.emplace(
        kernel.kernel.names.kernel, static_cast<uint32_t>(program_.definitions_size()));
    if (is_new) {
      *program_.add_definitions() = encode(kernel.kernel.definition);
      *program_.add_source_maps() = encode(kernel.kernel.names);
    }
    return known->second;
  }

  const TextKernel& kernel_of(const Named& name) const {
    std::vector<std::string_view> known;
    for (const TextKernel& kernel : kernels_) {
      if (kernel.kernel.names.kernel == name.text) return kernel;
      known.push_back(kernel.kernel.names.kernel);
    }
    refuse_unknown(name, "the file has no kernel", known);
  }

  uint32_t value_of(const Named& name) const {
    const auto found = values_.find(name.text);
    if (found != values_.end()) return found->second;
    std::vector<std::string_view> known;
    for (const auto& [value, id] : values_)
      known.push_back(value);
    refuse_unknown(name, fmt::format("program {} has no value", text_.name), known);
  }

  [[noreturn]] void refuse_unknown(const Named& name, std::string_view what,
                                   const std::vector<std::string_view>& known) const {
    const std::string_view best = nearest(name.text, known);
    source_.refuse(name.place, "{} {}{}", what, name.text,
                   best.empty() ? "" : fmt::format("; did you mean {}", best));
  }

  const Source& source_;
  const ProgramText& text_;
  const std::vector<TextKernel>& kernels_;
  v1::Program program_;
  std::map<std::string_view, uint32_t> values_;
  std::map<std::string, uint32_t> definitions_;
};

}  // namespace

std::vector<v1::Program> build_programs(const Source& source, const Tree& tree,
                                        const std::vector<TextKernel>& kernels) {
  std::vector<v1::Program> programs;
  for (const ProgramText& text : tree.programs) {
    for (const v1::Program& other : programs) {
      if (other.name() != text.name) continue;
      source.refuse(text.place, "the file has two programs {}", text.name);
    }
    programs.push_back(ProgramBuilder(source, text, kernels).run());
  }
  return programs;
}

}  // namespace kiln::language::syntax

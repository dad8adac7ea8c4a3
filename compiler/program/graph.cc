// The wiring of a program, checked, and an order to run it in: depth first from its results, so
// that a node stands close before its readers and what no result needs is left out. A node that is
// met while it is still open closes a cycle, which is told with all its members.
//
//   y = relu(h), h = dense(x, w), z = exp(x); results: y   ->   dense, relu
#include "compiler/program/graph.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::program {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  Graph run() {
    graph_.maker.assign(program_.values.size(), kGiven);
    for (NodeId node = 0; node < program_.nodes.size(); ++node)
      at(node, [&] { check_node(node); });
    check_results();
    check_updates();
    state_.assign(program_.nodes.size(), State::New);
    for (const ValueId value : results_of(program_))
      visit(value);
    graph_.readers.resize(program_.values.size());
    for (const NodeId node : graph_.order) {
      for (const ValueId value : program_.nodes[node].inputs)
        graph_.readers[value].push_back(node);
    }
    return std::move(graph_);
  }

 private:
  enum class State : uint8_t { New, Open, Done };

  template <typename Body>
  void at(NodeId node, Body&& body) const {
    try {
      body();
    } catch (Error& error) {
      error.set_location(program_.nodes[node].line);
      throw;
    }
  }

  const std::string& name(ValueId value) const { return program_.values[value].name; }

  void require_value(const std::string& who, ValueId value) const {
    if (value < program_.values.size()) return;
    fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE", "{} names value {}, but {} has {} values",
         who, value, called(program_), program_.values.size());
  }

  void check_node(NodeId id) {
    const Node& node = program_.nodes[id];
    if (node.is_gradient) {
      check_gradient(node);
    } else {
      check_kernel(node);
    }
    for (const ValueId value : node.inputs)
      require_value("node " + node.name, value);
    for (const ValueId value : node.outputs) {
      require_value("node " + node.name, value);
      set_maker(id, value);
    }
  }

  void check_gradient(const Node& node) const {
    if (node.inputs.size() > 1 && node.outputs.size() == node.inputs.size() - 1) return;
    fail(ErrorKind::InvalidArgument, "PROGRAM_ARITY",
         "node {} makes {} gradients, but names {} values to differentiate with respect to",
         node.name, node.outputs.size(), node.inputs.empty() ? 0 : node.inputs.size() - 1);
  }

  void check_kernel(const Node& node) const {
    if (node.kernel >= program_.kernels.size()) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_DEFINITION",
           "node {} applies definition {}, but {} has {}", node.name, node.kernel, called(program_),
           program_.kernels.size());
    }
    const language::Kernel& kernel = program_.kernels[node.kernel];
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    for (const language::TensorId tensor : kernel.definition.parameters) {
      const bool is_output = kernel.definition.is_output(tensor);
      (is_output ? outputs : inputs).push_back(kernel.names.tensor_name(kernel.definition, tensor));
    }
    check_arity(node, kernel, "reads", inputs, node.inputs.size());
    check_arity(node, kernel, "makes", outputs, node.outputs.size());
  }

  void check_arity(const Node& node, const language::Kernel& kernel, std::string_view verb,
                   const std::vector<std::string>& names, size_t given) const {
    if (names.size() == given) return;
    fail(ErrorKind::InvalidArgument, "PROGRAM_ARITY", "node {} names {} values, but {} {} {} ({})",
         node.name, given, kernel.names.kernel, verb, names.size(), fmt::join(names, ", "));
  }

  void set_maker(NodeId node, ValueId value) {
    const std::string& maker = program_.nodes[node].name;
    if (program_.values[value].kind != ValueKind::Made) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_MAKER", "node {} makes {}, which is {} of {}",
           maker, name(value), name_of(program_.values[value].kind), called(program_));
    }
    if (graph_.maker[value] != kGiven) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_MAKER",
           "{} is made by two nodes, {} and {}; give each a value of its own", name(value),
           program_.nodes[static_cast<size_t>(graph_.maker[value])].name, maker);
    }
    graph_.maker[value] = static_cast<int32_t>(node);
  }

  void check_results() const {
    const auto check = [&](std::string_view what, ValueId value) {
      require_value(fmt::format("{} {} of", "the", what), value);
      if (program_.values[value].kind == ValueKind::Made) return;
      fail(ErrorKind::InvalidArgument, "PROGRAM_RESULT",
           "{} {} of {} is {}; give back what a node makes of it", what, name(value),
           called(program_), name_of(program_.values[value].kind));
    };
    for (const ValueId value : program_.outputs)
      check("output", value);
    for (const ValueId value : program_.reports)
      check("report", value);
    if (program_.until) check("stop condition", *program_.until);
    if (program_.outputs.empty() && program_.reports.empty() && program_.updates.empty()) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_RESULT",
           "{} has neither outputs nor updates, so there is nothing to run", called(program_));
    }
  }

  void check_updates() const {
    std::vector<bool> updated(program_.values.size(), false);
    std::vector<bool> used(program_.values.size(), false);
    for (const auto& [parameter, value] : program_.updates) {
      require_value("an update", parameter);
      require_value("an update", value);
      const ValueKind kind = program_.values[parameter].kind;
      if (kind != ValueKind::Parameter) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE",
             "{} updates {}, which is {}; only parameters change", called(program_),
             name(parameter), kind == ValueKind::Made ? "what a node makes" : name_of(kind));
      }
      if (updated[parameter]) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE", "{} updates {} twice", called(program_),
             name(parameter));
      }
      if (program_.values[value].kind != ValueKind::Made || used[value]) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE",
             "{} becomes {}, which {}; copy it in a node of its own", name(parameter), name(value),
             used[value] ? "another parameter becomes, too" : "no node makes");
      }
      updated[parameter] = used[value] = true;
    }
  }

  /// Adds what makes a value, after what that needs. By hand, not by recursion: chains can be long.
  void visit(ValueId result) {
    std::vector<NodeId> open;
    const auto enter = [&](ValueId value) {
      if (program_.values[value].kind != ValueKind::Made) return;
      const int32_t maker = graph_.maker[value];
      if (maker == kGiven) {
        fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE",
             "{} of {} is made by no node; make it an input, or add the node", name(value),
             called(program_));
      }
      const auto node = static_cast<NodeId>(maker);
      if (state_[node] == State::Open) fail_cycle(open, node);
      if (state_[node] == State::New) {
        state_[node] = State::Open;
        open.push_back(node);
      }
    };
    enter(result);
    while (!open.empty()) {
      const NodeId node = open.back();
      const size_t before = open.size();
      for (const ValueId value : program_.nodes[node].inputs) {
        enter(value);
        if (open.size() > before) break;  // first what that needs
      }
      if (open.size() > before) continue;
      state_[node] = State::Done;
      graph_.order.push_back(node);
      open.pop_back();
    }
  }

  [[noreturn]] void fail_cycle(const std::vector<NodeId>& open, NodeId again) const {
    std::vector<std::string> names;
    for (auto at = std::find(open.begin(), open.end(), again); at != open.end(); ++at)
      names.push_back(program_.nodes[*at].name);
    names.push_back(program_.nodes[again].name);
    at(again, [&] {
      fail(
          ErrorKind::InvalidArgument, "PROGRAM_CYCLE",
          "the nodes of {} wait for each other: {}; what one step hands to the next is a parameter",
          called(program_), fmt::join(names, " needs "));
    });
    KILN_CHECK(false);
    std::abort();
  }

  const Program& program_;
  Graph graph_;
  std::vector<State> state_;
};

}  // namespace

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::Made: return "a value";
    case ValueKind::Input: return "an input";
    case ValueKind::Batch: return "a data set";
    case ValueKind::Parameter: return "a parameter";
    case ValueKind::Step: return "the number of the step";
  }
  return "a value";
}

std::vector<ValueId> results_of(const Program& program) {
  std::vector<ValueId> results = program.outputs;
  results.insert(results.end(), program.reports.begin(), program.reports.end());
  if (program.until) results.push_back(*program.until);
  for (const Update& update : program.updates)
    results.push_back(update.value);
  return results;
}

std::string called(const Program& program) {
  return program.name.empty() ? "the program" : program.name;
}

Graph graph_of(const Program& program) { return Checker(program).run(); }

}  // namespace kiln::program

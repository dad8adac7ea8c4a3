// Programs from the wire: kernels are decoded as those of Compile, everything else is copied. Names
// that are missing are made up, so that sentences have one for everything.
#include "server/programs/decode_program.h"

#include <fmt/format.h>

#include "compiler/language/utf8.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/error.h"

namespace kiln::server {

namespace {

// As many kernels as a worker keeps loaded, or fewer.
constexpr int kMostNodes = 4'096;
constexpr int kMostValues = 65'536;
constexpr size_t kNameBytes = 256;

void check_limit(std::string_view what, int count, int limit) {
  if (count <= limit) return;
  fail(ErrorKind::ResourceExhausted, "LIMIT", "the program has {} {}; the limit is {}", count, what,
       limit);
}

std::string name_or(const std::string& wire, std::string_view prefix, size_t number) {
  if (wire.empty()) return fmt::format("{}{}", prefix, number);
  return language::harmless(wire).substr(0, kNameBytes);
}

program::ValueKind kind_of(const v1::ProgramValue& wire, const std::string& name) {
  switch (wire.kind()) {
    case v1::VALUE_KIND_UNSPECIFIED: return program::ValueKind::Made;
    case v1::VALUE_KIND_INPUT: return program::ValueKind::Input;
    case v1::VALUE_KIND_BATCH: return program::ValueKind::Batch;
    case v1::VALUE_KIND_PARAMETER: return program::ValueKind::Parameter;
    case v1::VALUE_KIND_STEP: return program::ValueKind::Step;
    default: break;
  }
  fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE", "value {} has an unknown kind (number {})",
       name, static_cast<int>(wire.kind()));
}

void add_kernels(const v1::Program& wire, program::Program& program) {
  static const v1::SourceMap no_names;
  for (int i = 0; i < wire.definitions_size(); ++i) {
    const v1::SourceMap& names = i < wire.source_maps_size() ? wire.source_maps(i) : no_names;
    program.kernels.push_back(annotate(fmt::format("in definition {} of the program", i), [&] {
      return language::decode(wire.definitions(i), names);
    }));
  }
}

}  // namespace

program::Program decode_program(const v1::Program& wire) {
  check_limit("nodes", wire.nodes_size(), kMostNodes);
  check_limit("definitions", wire.definitions_size(), kMostNodes);
  check_limit("values", wire.values_size(), kMostValues);
  check_limit("outputs", wire.outputs_size(), kMostValues);
  check_limit("reports", wire.reports_size(), kMostNodes);
  check_limit("updates", wire.updates_size(), kMostValues);
  program::Program program;
  program.name = language::harmless(wire.name()).substr(0, kNameBytes);
  add_kernels(wire, program);
  for (const v1::ProgramValue& value : wire.values()) {
    std::string name = name_or(value.name(), "value", program.values.size());
    const program::ValueKind kind = kind_of(value, name);
    program.values.push_back({std::move(name), kind});
  }
  for (const v1::ProgramNode& node : wire.nodes()) {
    program::Node& made = program.nodes.emplace_back();
    made.name = name_or(node.name(), "node", program.nodes.size() - 1);
    made.kernel = node.definition();
    made.is_gradient = node.gradient();
    made.inputs.assign(node.inputs().begin(), node.inputs().end());
    made.outputs.assign(node.outputs().begin(), node.outputs().end());
    made.line = {language::harmless(node.file()),
                 static_cast<int>(std::min(node.line(), 0x7FFFFFFFU))};
  }
  for (const v1::ProgramUpdate& update : wire.updates())
    program.updates.push_back({update.parameter(), update.value()});
  program.outputs.assign(wire.outputs().begin(), wire.outputs().end());
  program.reports.assign(wire.reports().begin(), wire.reports().end());
  if (wire.has_until()) program.until = wire.until();
  return program;
}

}  // namespace kiln::server

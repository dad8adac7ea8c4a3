// What a step of a program runs, without running it: the service plans it for shapes that are
// given by name, and compiles its kernels.
#include <algorithm>
#include <functional>
#include <numeric>

#include <kiln/connection.h>
#include <kiln/program.h>

#include "client/cpp/fail.h"
#include "client/cpp/program_state.h"

namespace kiln {
inline namespace client {
namespace detail {

std::uint32_t given_id(const v1::Program& program, const std::string& name) {
  std::vector<std::string> known;
  for (int id = 0; id < program.values_size(); ++id) {
    const v1::ProgramValue& value = program.values(id);
    if (value.kind() == v1::VALUE_KIND_UNSPECIFIED || value.kind() == v1::VALUE_KIND_STEP) continue;
    if (value.name() == name) return static_cast<std::uint32_t>(id);
    known.push_back(value.name());
  }
  fail(ErrorKind::InvalidArgument, "PROGRAM_FEED", "{} is no input of {}; its inputs are {}", name,
       program.name(), known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::string define(Link& link, const v1::Program& program, const std::string& target) {
  v1::DefineProgramRequest request;
  *request.mutable_program() = program;
  request.mutable_target()->set_name(target == "cpu" ? "llvm" : target);
  v1::DefineProgramResponse response;
  link.call(link.programs(), &v1::ProgramService::Stub::Define, request, response);
  return response.program_id();
}

}  // namespace detail

namespace {

/// Which kernels need the memory of a value; of what a parameter becomes, all.
void set_life(ProgramPlan::Value& value, std::uint32_t id, const v1::PlanProgramResponse& reply) {
  value.last = static_cast<std::size_t>(std::max(reply.kernels_size(), 1)) - 1;
  if (!value.becomes.empty()) return;
  bool is_used = false;
  for (int k = 0; k < reply.kernels_size(); ++k) {
    for (const auto* list : {&reply.kernels(k).inputs(), &reply.kernels(k).outputs()}) {
      if (std::find(list->begin(), list->end(), id) == list->end()) continue;
      if (!is_used) value.first = static_cast<std::size_t>(k);
      value.last = static_cast<std::size_t>(k);
      is_used = true;
    }
  }
}

ProgramPlan plan_from(const v1::PlanProgramResponse& reply, const std::string& name) {
  ProgramPlan plan{.program = name,
                   .kernels = {},
                   .values = {},
                   .arena_bytes = reply.arena_bytes(),
                   .live_bytes = reply.live_bytes(),
                   .separate_bytes = reply.separate_bytes()};
  for (const v1::PlannedKernel& kernel : reply.kernels()) {
    plan.kernels.push_back({kernel.name(),
                            {kernel.nodes().begin(), kernel.nodes().end()},
                            kernel.read_bytes(),
                            kernel.written_bytes(),
                            kernel.once()});
  }
  for (const v1::PlannedValue& each : reply.values()) {
    ProgramPlan::Value value{.name = each.name(),
                             .type = static_cast<DType>(each.type()),
                             .shape = {each.shape().begin(), each.shape().end()},
                             .offset = each.offset(),
                             .becomes = each.becomes(),
                             .reuses = each.reuses()};
    set_life(value, each.value(), reply);
    plan.values.push_back(std::move(value));
  }
  return plan;
}

}  // namespace

std::int64_t ProgramPlan::Value::bytes() const {
  return std::accumulate(shape.begin(), shape.end(), static_cast<std::int64_t>(size_of(type)),
                         std::multiplies<>());
}

std::int64_t ProgramPlan::moved_bytes() const {
  return std::accumulate(
      kernels.begin(), kernels.end(), std::int64_t{0}, [](std::int64_t sum, const Step& kernel) {
        return kernel.once ? sum : sum + kernel.read_bytes + kernel.written_bytes;
      });
}

ProgramPlan Connection::plan(const Program& program,
                             const std::map<std::string, std::vector<std::int64_t>>& shapes,
                             const ProgramOptions& options, SourceLocation where) const {
  return detail::at_line(where, [&] {
    const v1::Program& wire = program.state()->wire;
    v1::PlanProgramRequest request;
    request.set_batch(options.batch);
    std::map<std::uint32_t, v1::GivenShape> given;
    for (const auto& [id, argument] : program.state()->own) {
      v1::GivenShape& own = given[id];
      const auto take = [&own](const auto& array) {
        own.set_type(static_cast<v1::DataType>(array.dtype()));
        own.mutable_shape()->Add(array.shape().begin(), array.shape().end());
      };
      std::visit(take, argument);
    }
    const std::vector<ProgramValue> values = program.values();
    for (const auto& each : shapes) {
      const std::vector<std::int64_t>& shape = each.second;
      v1::GivenShape& row = given[detail::given_id(wire, each.first)];
      const auto value = std::find_if(values.begin(), values.end(), [&](const ProgramValue& known) {
        return known.name == each.first;
      });
      row.set_type(static_cast<v1::DataType>(value->type));
      row.clear_shape();
      row.mutable_shape()->Add(shape.begin(), shape.end());
    }
    for (auto& [id, row] : given) {
      row.set_value(id);
      *request.add_shapes() = std::move(row);
    }
    request.set_program_id(detail::define(*link_, wire, options.target));
    v1::PlanProgramResponse reply;
    link_->call(link_->programs(), &v1::ProgramService::Stub::Plan, request, reply);
    return plan_from(reply, program.name());
  });
}

}  // namespace client
}  // namespace kiln

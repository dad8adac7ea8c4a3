// A plan to bytes and back. Nothing in it is decoded, fused or lowered again: kernels stand in it
// as the requests that were checked when it was made, by which the caches of kernels find their
// artifacts. Numbers that would lead out of a table are damage, as a wrong checksum is.
#include "server/programs/stored_plan.h"

#include <algorithm>

#include "kiln/internal/plans.pb.h"
#include "runtime/core/error.h"

namespace kiln::server {

namespace {

void require(bool holds) {
  if (!holds) fail(ErrorKind::Internal, "PLAN_ENTRY", "what it says is no plan of its program");
}

void pack_names(const KernelNames& names, internal::StoredNames& stored) {
  stored.set_kernel(names.kernel);
  stored.mutable_parameters()->Add(names.parameters.begin(), names.parameters.end());
  stored.mutable_sizes()->Add(names.sizes.begin(), names.sizes.end());
  stored.mutable_stages()->Add(names.stages.begin(), names.stages.end());
  for (const SourceLocation& at : names.lines) {
    stored.add_files(at.file);
    stored.add_lines(at.line);
  }
}

KernelNames unpack_names(const internal::StoredNames& stored) {
  require(stored.files_size() == stored.lines_size());
  KernelNames names;
  names.kernel = stored.kernel();
  names.parameters.assign(stored.parameters().begin(), stored.parameters().end());
  names.sizes.assign(stored.sizes().begin(), stored.sizes().end());
  names.stages.assign(stored.stages().begin(), stored.stages().end());
  for (int i = 0; i < stored.files_size(); ++i)
    names.lines.push_back({stored.files(i), stored.lines(i)});
  return names;
}

void pack_kernel(const program::PlannedKernel& kernel, const CheckedRequest& request,
                 internal::StoredKernel& stored) {
  stored.set_name(kernel.name);
  stored.mutable_nodes()->Add(kernel.nodes.begin(), kernel.nodes.end());
  stored.mutable_inputs()->Add(kernel.joined.inputs.begin(), kernel.joined.inputs.end());
  stored.mutable_outputs()->Add(kernel.joined.outputs.begin(), kernel.joined.outputs.end());
  stored.set_read_bytes(kernel.read_bytes);
  stored.set_written_bytes(kernel.written_bytes);
  *stored.mutable_request() = request.wire;
  pack_names(request.names, *stored.mutable_names());
  stored.set_names_id(names_id_of(request));
  stored.set_is_constant(kernel.is_constant);
}

void pack_values(const program::Plan& plan, internal::StoredPlan& stored) {
  for (size_t value = 0; value < plan.values.size(); ++value) {
    internal::StoredValue& packed = *stored.add_values();
    packed.set_name(plan.program.values[value].name);
    packed.set_kind(static_cast<uint32_t>(plan.program.values[value].kind));
    packed.set_place(static_cast<uint32_t>(plan.values[value].place));
    packed.set_offset(plan.values[value].offset);
    packed.set_reuses(plan.values[value].reuses);
    const program::ValueType& type = plan.shapes.values[value];
    packed.set_type(static_cast<v1::DataType>(type.type));
    packed.mutable_shape()->Add(type.shape.begin(), type.shape.end());
  }
}

program::ValueType unpack_type(const internal::StoredValue& stored) {
  const std::optional<DType> type = dtype_from_number(stored.type());
  require(type && std::ranges::all_of(stored.shape(), [](int64_t size) { return size >= 0; }));
  return {*type, {stored.shape().begin(), stored.shape().end()}};
}

void unpack_value(const internal::StoredValue& stored, int64_t arena_bytes, program::Plan& plan) {
  require(stored.kind() <= static_cast<uint32_t>(program::ValueKind::Step));
  require(stored.place() <= static_cast<uint32_t>(program::Place::Kept));
  plan.program.values.push_back({stored.name(), static_cast<program::ValueKind>(stored.kind())});
  const program::ValueType& type = plan.shapes.values.emplace_back(unpack_type(stored));
  const auto place = static_cast<program::Place>(stored.place());
  if (place == program::Place::Arena) {
    const int64_t end = arena_bytes - type.bytes();
    require(stored.offset() >= 0 && stored.offset() <= end);
  }
  plan.values.push_back({place, stored.offset(), stored.reuses()});
}

program::PlannedKernel unpack_kernel(const internal::StoredKernel& stored,
                                     const program::Plan& plan) {
  const auto is_below = [](size_t limit) { return [limit](uint32_t id) { return id < limit; }; };
  const auto has_place = [&](uint32_t value) {
    return value < plan.values.size() && plan.values[value].place != program::Place::Nowhere;
  };
  require(std::ranges::all_of(stored.nodes(), is_below(plan.program.nodes.size())));
  require(std::ranges::all_of(stored.inputs(), has_place));
  const auto made = stored.is_constant() ? program::Place::Kept : program::Place::Arena;
  require(std::ranges::all_of(stored.outputs(), [&](uint32_t value) {
    return value < plan.values.size() && plan.values[value].place == made;
  }));
  program::PlannedKernel kernel;
  kernel.name = stored.name();
  kernel.nodes.assign(stored.nodes().begin(), stored.nodes().end());
  kernel.joined.inputs.assign(stored.inputs().begin(), stored.inputs().end());
  kernel.joined.outputs.assign(stored.outputs().begin(), stored.outputs().end());
  kernel.read_bytes = stored.read_bytes();
  kernel.written_bytes = stored.written_bytes();
  kernel.is_constant = stored.is_constant();
  return kernel;
}

}  // namespace

std::string pack_plan(const CheckedPlan& checked) {
  const program::Plan& plan = checked.plan;
  internal::StoredPlan stored;
  pack_values(plan, stored);
  for (const program::Node& node : plan.program.nodes)
    stored.add_nodes(node.name);
  for (size_t k = 0; k < plan.kernels.size(); ++k)
    pack_kernel(plan.kernels[k], checked.requests[k], *stored.add_kernels());
  stored.set_arena_bytes(plan.memory.bytes);
  stored.set_live_bytes(plan.memory.live_bytes);
  stored.set_separate_bytes(plan.memory.separate_bytes);
  return stored.SerializeAsString();
}

CheckedPlan unpack_plan(const std::string& bytes, const program::Program& program,
                        const CompileSetting& setting) {
  internal::StoredPlan stored;
  require(stored.ParseFromString(bytes));
  CheckedPlan checked;
  program::Plan& plan = checked.plan;
  plan.program.name = program.name;
  plan.program.updates = program.updates;
  plan.memory.bytes = stored.arena_bytes();
  plan.memory.live_bytes = stored.live_bytes();
  plan.memory.separate_bytes = stored.separate_bytes();
  // Those that a client sent, then those of the gradients.
  require(static_cast<size_t>(stored.values_size()) >= program.values.size());
  for (const internal::StoredValue& value : stored.values())
    unpack_value(value, stored.arena_bytes(), plan);
  for (const std::string& name : stored.nodes())
    plan.program.nodes.emplace_back().name = name;
  for (internal::StoredKernel& kernel : *stored.mutable_kernels()) {
    plan.kernels.push_back(unpack_kernel(kernel, plan));
    checked.requests.push_back(known_request(std::move(*kernel.mutable_request()),
                                             unpack_names(kernel.names()), kernel.names_id(),
                                             setting));
  }
  return checked;
}

}  // namespace kiln::server

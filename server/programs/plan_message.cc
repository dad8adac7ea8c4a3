// A plan on the wire: the kernels of a step with what they read and write, and where each value
// lies.
#include "server/programs/plan_message.h"

namespace kiln::server {

void write_plan(const CompiledPlan& compiled, v1::PlanProgramResponse& response) {
  const program::Plan& plan = compiled.plan;
  const program::Program& program = plan.program;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const program::PlannedKernel& kernel = plan.kernels[k];
    v1::PlannedKernel& written = *response.add_kernels();
    written.set_name(kernel.name);
    written.set_kernel_id(compiled.kernels[k]->id);
    for (const program::NodeId node : kernel.nodes)
      written.add_nodes(program.nodes[node].name);
    written.set_read_bytes(kernel.read_bytes);
    written.set_written_bytes(kernel.written_bytes);
    written.mutable_inputs()->Add(kernel.joined.inputs.begin(), kernel.joined.inputs.end());
    written.mutable_outputs()->Add(kernel.joined.outputs.begin(), kernel.joined.outputs.end());
    written.set_cache(compiled.levels[k]);
    written.set_once(kernel.is_constant);
  }
  response.set_arena_bytes(plan.memory.bytes);
  response.set_live_bytes(plan.memory.live_bytes);
  response.set_separate_bytes(plan.memory.separate_bytes);
  for (program::ValueId value = 0; value < program.values.size(); ++value) {
    const program::PlannedValue& planned = plan.values[value];
    if (planned.place == program::Place::Nowhere) continue;
    v1::PlannedValue& written = *response.add_values();
    written.set_value(value);
    written.set_name(program.values[value].name);
    const program::ValueType& type = plan.shapes.values[value];
    written.set_type(static_cast<v1::DataType>(type.type));
    written.mutable_shape()->Add(type.shape.begin(), type.shape.end());
    written.set_offset(planned.place == program::Place::Arena ? planned.offset : -1);
    written.set_reuses(planned.reuses);
    for (const program::Update& update : program.updates) {
      if (update.value == value) written.set_becomes(program.values[update.parameter].name);
    }
  }
  response.mutable_timings()->set_compile(compiled.seconds);
}

}  // namespace kiln::server

// What steps are made of, as the worker is told.
#include "server/programs/steps_message.h"

namespace kiln::server {

void set_slot(const Slice& slice, int64_t offset, const program::ValueType& type,
              internal::ProgramSlot& slot) {
  slot.mutable_place()->set_arena(slice.arena()->number);
  slot.mutable_place()->set_offset(static_cast<uint64_t>(slice.offset() + offset));
  slot.mutable_place()->mutable_shape()->Add(type.shape.begin(), type.shape.end());
  slot.set_bytes(static_cast<uint64_t>(type.bytes()));
}

void set_kernel(const CompiledPlan& plan, size_t k,
                const std::function<uint32_t(program::ValueId)>& slot_of,
                internal::ProgramKernel& kernel) {
  const program::Joined& joined = plan.plan.kernels[k].joined;
  kernel.set_kernel(plan.kernels[k]->number);
  for (const auto* list : {&joined.inputs, &joined.outputs}) {
    for (const program::ValueId value : *list)
      kernel.add_slots(slot_of(value));
  }
  kernel.mutable_scalars()->Add(plan.bound[k].scalars.begin(), plan.bound[k].scalars.end());
  kernel.set_variant(static_cast<uint32_t>(plan.bound[k].variant));
}

}  // namespace kiln::server

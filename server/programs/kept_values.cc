// What is computed once is kept beside the parameters that it follows from: by the plan, by the
// memory of each parameter and by how often that was written. Versions are taken before the kernels
// run, so that who writes a parameter meanwhile makes what they leave stale.
#include "server/programs/kept_values.h"

#include <algorithm>

#include "server/programs/steps_message.h"

namespace kiln::server {

KeptValues::Sources::Sources(const CompiledPlan& plan, const ValueSlices& given) {
  for (const program::PlannedKernel& kernel : plan.plan.kernels) {
    if (!kernel.is_constant) continue;
    for (const program::ValueId value : kernel.joined.inputs) {
      const auto slice = given.find(value);
      if (slice != given.end()) sources_[value] = {slice->second, slice->second->version()};
    }
  }
}

bool KeptValues::Sources::are_in(const ValueSlices& given) const {
  return std::ranges::all_of(sources_, [&](const auto& source) {
    const auto slice = given.find(source.first);
    return slice != given.end() && slice->second == source.second.slice.lock();
  });
}

bool KeptValues::Sources::are_unchanged() const {
  return std::ranges::all_of(sources_, [](const auto& source) {
    const std::shared_ptr<Slice> slice = source.second.slice.lock();
    return slice && slice->version() == source.second.version;
  });
}

ValueSlices KeptValues::find(const std::shared_ptr<const CompiledPlan>& plan,
                             const ValueSlices& given) {
  const std::lock_guard lock(mutex_);
  drop_stale();
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& each) {
    return each.plan.lock() == plan && each.sources.are_in(given);
  });
  if (entry == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->made;
}

void KeptValues::keep(const std::shared_ptr<const CompiledPlan>& plan, Sources sources,
                      ValueSlices made) {
  const std::lock_guard lock(mutex_);
  drop_stale();
  entries_.push_front({plan, std::move(sources), std::move(made)});
  if (entries_.size() > limit_) entries_.pop_back();
}

void KeptValues::drop_stale() {
  std::erase_if(entries_, [](const Entry& entry) {
    return entry.plan.expired() || !entry.sources.are_unchanged();
  });
}

bool has_constants(const CompiledPlan& plan) {
  return std::ranges::any_of(plan.plan.kernels, &program::PlannedKernel::is_constant);
}

ValueSlices allocate_constants(const CompiledPlan& plan, ArenaPool& arenas) {
  ValueSlices made;
  for (program::ValueId value = 0; value < plan.plan.values.size(); ++value) {
    if (plan.plan.values[value].place == program::Place::Kept)
      made[value] = arenas.allocate(plan.plan.shapes.values[value].bytes());
  }
  return made;
}

std::shared_ptr<const ProgramSteps> constant_steps(const std::string& name,
                                                   const CompiledPlan& plan,
                                                   const ValueSlices& slices) {
  auto steps = std::make_shared<ProgramSteps>();
  internal::ExecProgram& message = steps->message;
  message.set_program(name);
  message.set_end(1);
  std::map<program::ValueId, uint32_t> numbers;
  const auto slot_of = [&](program::ValueId value) {
    const auto [slot, is_new] = numbers.emplace(value, message.slots_size());
    if (!is_new) return slot->second;
    const std::shared_ptr<Slice>& slice = slices.at(value);
    const bool is_made = plan.plan.values[value].place == program::Place::Kept;
    set_slot(*slice, 0, plan.plan.shapes.values[value], *message.add_slots());
    message.mutable_slots()->rbegin()->set_is_made(is_made);
    message.mutable_slots()->rbegin()->set_is_result(is_made);
    steps->given.push_back(slice);
    return slot->second;
  };
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (!plan.plan.kernels[k].is_constant) continue;
    steps->kernels.push_back(plan.kernels[k]);
    set_kernel(plan, k, slot_of, *message.add_kernels());
  }
  return steps;
}

}  // namespace kiln::server

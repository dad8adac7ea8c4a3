// From a program and the shapes of what is given to kernels that are compiled and bound. All
// kernels are asked for at once, so that several compilers share them and equal ones are compiled
// once; other shapes are another plan, whose kernels come from the caches as far as they are the
// same.
#include "server/programs/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/language/wire/decode.h"

namespace kiln::server {

namespace {

// More would not stay loaded in a worker together.
constexpr size_t kMostKernels = 400;

std::string key_of(const ProgramEntry& entry, const program::GivenTypes& given) {
  std::string key = entry.id;
  for (const auto& [value, type] : given)
    key += fmt::format(" {}:{}[{}]", value, type.type, fmt::join(type.shape, ","));
  return key;
}

v1::CompileRequest request_for(const ProgramEntry& entry, const program::PlannedKernel& kernel) {
  v1::CompileRequest request;
  *request.mutable_definition() = language::encode(kernel.joined.kernel.definition);
  *request.mutable_source_map() = language::encode(kernel.joined.kernel.names);
  *request.mutable_target() = entry.target;
  *request.mutable_options() = entry.options;
  return request;
}

BoundCall bound_call(const program::Plan& plan, const program::Joined& joined,
                     const KernelEntry& kernel) {
  std::vector<ArgumentSlot> slots;
  for (const auto* values : {&joined.inputs, &joined.outputs}) {
    for (const program::ValueId value : *values) {
      const program::ValueType& type = plan.shapes.values[value];
      slots.push_back({true, {type.type, type.shape, {}}});
    }
  }
  return bind_arguments(kernel.artifact(), kernel.names, slots, {});
}

}  // namespace

void Planner::plan(const std::shared_ptr<const ProgramEntry>& program,
                   const program::GivenTypes& given, std::shared_ptr<Call> call, PlanDone done) {
  std::string key = key_of(*program, given);
  if (std::shared_ptr<const CompiledPlan> known = find(key)) return done(std::move(known));
  const auto flight = std::make_shared<Flight>();
  flight->plan = std::make_shared<CompiledPlan>();
  CompiledPlan& plan = *flight->plan;
  plan.plan = program::make_plan(program->program, given);
  const size_t count = plan.plan.kernels.size();
  if (count > kMostKernels) {
    fail(ErrorKind::ResourceExhausted, "LIMIT", "a step of {} has {} kernels; the limit is {}",
         program::called(program->program), count, kMostKernels);
  }
  plan.kernels.resize(count);
  plan.bound.resize(count);
  plan.levels.resize(count);
  flight->missing = count;
  flight->done = std::move(done);
  flight->key = std::move(key);
  for (size_t k = 0; k < count; ++k) {
    const auto told = [this, flight, k](Outcome<CompileResult> outcome) {
      take(flight, k, std::move(outcome));
    };
    try {
      compile_(request_for(*program, plan.plan.kernels[k]), call, told);
    } catch (...) {
      told(current_error());
    }
  }
}

void Planner::take(const std::shared_ptr<Flight>& flight, size_t kernel,
                   Outcome<CompileResult> outcome) {
  {
    const std::lock_guard lock(flight->mutex);
    CompiledPlan& plan = *flight->plan;
    if (const Error* error = std::get_if<Error>(&outcome)) {
      if (!flight->error) flight->error = *error;
    } else {
      const auto& result = std::get<CompileResult>(outcome);
      try {
        plan.kernels[kernel] = result.kernel;
        plan.levels[kernel] = result.level;
        plan.bound[kernel] =
            bound_call(plan.plan, plan.plan.kernels[kernel].joined, *result.kernel);
      } catch (...) {
        if (!flight->error) flight->error = current_error();
      }
    }
    if (--flight->missing != 0) return;
    plan.seconds = seconds_between(flight->begun, Clock::now());
  }
  if (flight->error) return flight->done(*flight->error);
  keep(flight->key, flight->plan);
  flight->done(std::shared_ptr<const CompiledPlan>(flight->plan));
}

std::shared_ptr<const CompiledPlan> Planner::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  for (auto at = plans_.begin(); at != plans_.end(); ++at) {
    if (at->first != key) continue;
    plans_.splice(plans_.begin(), plans_, at);
    return at->second;
  }
  return nullptr;
}

void Planner::keep(const std::string& key, std::shared_ptr<const CompiledPlan> plan) {
  const std::lock_guard lock(mutex_);
  plans_.emplace_front(key, std::move(plan));
  if (plans_.size() > limit_) plans_.pop_back();
}

}  // namespace kiln::server

// From a program and the shapes of what is given to kernels that are compiled and bound. All
// kernels are asked for at once, so that several compilers share them and equal ones are compiled
// once; other shapes are another plan, whose kernels come from the caches as far as they are the
// same. A plan that a cache has is not made again: no gradient is derived, no node fused, no
// definition checked or lowered.
#include "server/programs/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/autoschedule/choose/packed_filters.h"
#include "compiler/autoschedule/choose/product_chains.h"
#include "compiler/language/wire/decode.h"
#include "compiler/predict/saved_by_attention.h"
#include "compiler/tile/contraction.h"

namespace kiln::server {

namespace {

// More would not stay loaded in a worker together.
constexpr size_t kMostKernels = 400;
// So that the compilers always have work, and room for that of others.
constexpr size_t kAtOnce = 32;

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

/// What kernels of the program are scheduled for.
Target target_for(const ProgramEntry& entry, const CompileSetting& setting) {
  Target target{.kind = target_of(entry), .arch = entry.target.arch()};
  const bool depends = target.traits().has_vectors || target.traits().has_threads;
  if (target.arch.empty() && depends) target.arch = setting.arch(target.kind);
  return target;
}

/// What products in one kernel would save on that target.
program::SavedByProducts prediction_for(const Target& target, const CompileOptions& options) {
  return [target, options](const language::Kernel& kernel) -> double {
    if (!target.traits().has_threads)
      return autoschedule::saved_by_product_chain(kernel, target, options);
    if (!options.automatic || options.strict) return 0;
    return predict::saved_by_attention(kernel, target.arch);
  };
}

/// What products of a GPU lose by what is joined to them.
program::HasFastForm form_for(const Target& target, const CompileOptions& options) {
  if (!target.traits().has_threads || !options.automatic || options.strict) return {};
  return [target](const language::Kernel& kernel) {
    return tile::is_plain_product(kernel, target.arch);
  };
}

program::FindPacked packing_for(const Target& target, const CompileOptions& options) {
  return [target, options](const language::Kernel& kernel,
                           const std::vector<bool>& lasting) -> std::optional<program::Packed> {
    std::optional<autoschedule::PackedFilters> packed =
        autoschedule::pack_filters(kernel, lasting, target, options);
    if (!packed) return std::nullopt;
    return program::Packed{packed->parameter, std::move(packed->copy), std::move(packed->product)};
  };
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

CheckedPlan plan_anew(const ProgramEntry& program, const program::GivenTypes& given,
                      const CompileSetting& setting) {
  CheckedPlan made;
  const Target target = target_for(program, setting);
  CompileOptions options;
  options.automatic = program.options.auto_() != v1::AUTO_MODE_NEVER;
  options.strict = program.options.strict();
  made.plan = program::make_plan(program.program, given, prediction_for(target, options),
                                 packing_for(target, options), form_for(target, options));
  const size_t count = made.plan.kernels.size();
  if (count > kMostKernels) {
    fail(ErrorKind::ResourceExhausted, "LIMIT", "a step of {} has {} kernels; the limit is {}",
         program::called(program.program), count, kMostKernels);
  }
  for (program::PlannedKernel& kernel : made.plan.kernels) {
    made.requests.push_back(check_request(request_for(program, kernel), setting));
    kernel.joined.kernel = {};
    kernel.joined.tensors.clear();
  }
  made.plan.program.kernels.clear();
  made.plan.shapes.kernels.clear();
  return made;
}

}  // namespace

void Planner::plan(const std::shared_ptr<const ProgramEntry>& program,
                   const program::GivenTypes& given, std::shared_ptr<Call> call, PlanDone done) {
  std::string key = key_of(*program, given);
  if (std::shared_ptr<const CompiledPlan> known = find(key)) return done(std::move(known));
  const auto flight = std::make_shared<Flight>();
  flight->program = program;
  flight->call = std::move(call);
  flight->done = std::move(done);
  flight->key = std::move(key);
  work_.post([this, flight, given] {
    try {
      prepare(*flight, given);
    } catch (...) {
      return flight->done(current_error());
    }
    ask(flight);
  });
}

void Planner::prepare(Flight& flight, const program::GivenTypes& given) {
  const ProgramEntry& program = *flight.program;
  const CompileSetting setting = parts_.setting();
  flight.form = plan_form(program, given, setting);
  std::optional<CheckedPlan> checked = store_.find(flight.form, program.program, setting);
  if (!checked) {
    checked = plan_anew(program, given, setting);
    flight.packed = pack_plan(*checked);
    parts_.counters.plans.fetch_add(1);
  }
  const size_t count = checked->requests.size();
  flight.plan = std::make_shared<CompiledPlan>();
  flight.plan->plan = std::move(checked->plan);
  flight.plan->kernels.resize(count);
  flight.plan->bound.resize(count);
  flight.plan->levels.resize(count);
  flight.requests = std::move(checked->requests);
  flight.missing = count;
}

/// Asks for kernels as long as few are under way. By a loop that one thread is in at a time: what
/// comes at once, from a cache, must not ask for the next from within.
void Planner::ask(const std::shared_ptr<Flight>& flight) {
  const size_t count = flight->plan->kernels.size();
  while (true) {
    size_t kernel = 0;
    {
      const std::lock_guard lock(flight->mutex);
      const size_t under_way = flight->next - (count - flight->missing);
      flight->asking = flight->next < count && under_way < kAtOnce;
      if (!flight->asking) return;
      kernel = flight->next++;
    }
    const auto told = [this, flight, kernel](Outcome<CompileResult> outcome) {
      take(flight, kernel, std::move(outcome));
    };
    try {
      parts_.compile(std::move(flight->requests[kernel]), flight->call, told);
    } catch (...) {
      told(current_error());
    }
  }
}

void Planner::take(const std::shared_ptr<Flight>& flight, size_t kernel,
                   Outcome<CompileResult> outcome) {
  bool is_last = false;
  bool asks = false;
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
    --flight->missing;
    is_last = flight->missing == 0;
    asks = !is_last && !flight->asking;
    // So that no other thread asks as well.
    if (asks) flight->asking = true;
    if (is_last) plan.seconds = seconds_between(flight->begun, Clock::now());
  }
  if (asks) ask(flight);
  if (!is_last) return;
  if (flight->error) return flight->done(*flight->error);
  keep(flight->key, flight->plan);
  if (!flight->packed.empty())
    work_.post([this, flight] { store_.put(flight->form, flight->packed); });
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

// One run, as a chain of calls to the device of about a fifth of a second each, so that other calls
// have their turn, a cancelled run ends soon, and progress is what each answer says. Values of the
// plan become slots: what is given where it lies, what passes between kernels in one arena of the
// run. A parameter's tensor holds its value between the calls. What parameters alone determine is
// computed by a call before them, or was by an earlier run.
#include "server/programs/program_run.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/errors.h"
#include "server/programs/steps_message.h"

namespace kiln::server {

namespace {

constexpr double kSecondsACall = 0.2;
constexpr double kSecondsBetweenEvents = 0.5;
// What the outputs of one reply may take of a message of 4 MiB, and its reports.
constexpr int64_t kReplyBytes = int64_t{2} << 20;
constexpr size_t kReportedSteps = 100'000;
// Steps of a program that ends by itself, unless the caller says how many.
constexpr uint64_t kStepsUntil = 1'000'000;

std::shared_ptr<const KernelEntry> name_entry(const ProgramEntry& entry) {
  auto named = std::make_shared<KernelEntry>();
  named->key = "program " + entry.id;
  named->names.kernel = program::called(entry.program);
  return named;
}

}  // namespace

ProgramRun::ProgramRun(RunParts parts, std::shared_ptr<const ProgramEntry> entry,
                       std::shared_ptr<const CompiledPlan> plan,
                       const v1::RunProgramRequest& request, GivenValues given,
                       std::shared_ptr<Call> call, ProgramWatcher watcher)
    : parts_(std::move(parts)),
      entry_(std::move(entry)),
      plan_(std::move(plan)),
      request_(request),
      given_(std::move(given)),
      call_(std::move(call)),
      watcher_(std::move(watcher)),
      name_(name_entry(*entry_)),
      series_(entry_->program.reports.size()),
      sums_(entry_->program.reports.size(), 0) {}

void ProgramRun::start() {
  if (!has_constants(*plan_)) return start_steps();
  kept_ = parts_.kept.find(plan_, given_.slices);
  if (kept_.empty()) return compute_constants();
  start_steps();
}

void ProgramRun::compute_constants() {
  parts_.counters.constants.fetch_add(1);
  KeptValues::Sources sources(*plan_, given_.slices);
  kept_ = allocate_constants(*plan_, *parts_.arenas);
  ValueSlices slices = given_.slices;
  slices.insert(kept_.begin(), kept_.end());
  DeviceCall work = call_of(constant_steps(program::called(entry_->program), *plan_, slices));
  for (const std::shared_ptr<Slice>& slice : work.program->given)
    work.tensors.push_back(slice);
  work.done = [self = shared_from_this(), sources](Outcome<DeviceResult> outcome) {
    self->take_constants(std::move(outcome), sources);
  };
  parts_.device.submit(std::move(work));
}

void ProgramRun::take_constants(Outcome<DeviceResult> outcome, KeptValues::Sources sources) {
  try {
    if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
    const auto& result = std::get<DeviceResult>(outcome);
    kernel_seconds_ += result.kernel_seconds;
    queue_seconds_ += result.queue_seconds;
    parts_.kept.keep(plan_, std::move(sources), kept_);
    start_steps();
  } catch (...) {
    fail_run();
  }
}

void ProgramRun::start_steps() {
  message_.set_program(program::called(entry_->program));
  message_.set_batches(given_.batches);
  message_.set_number_of_first(request_.first_step());
  message_.set_stop_on_nan(request_.stop_on_nan());
  message_.set_at_pass(given_.batches != 0);
  message_.set_seconds(kSecondsACall);
  add_slots();
  add_kernels();
  add_ends();
  submit();
}

void ProgramRun::add_slots() {
  arena_ = parts_.arenas->allocate(std::max<int64_t>(plan_->plan.memory.bytes, 64));
  number_ = parts_.arenas->allocate(sizeof(int64_t));
  memory_ = {arena_, number_};
  const std::vector<program::Value>& values = plan_->plan.program.values;
  for (program::ValueId value = 0; value < values.size(); ++value) {
    const std::shared_ptr<Slice> slice = slice_of(value);
    if (!slice) continue;
    const program::PlannedValue& planned = plan_->plan.values[value];
    const bool is_step = values[value].kind == program::ValueKind::Step;
    const bool is_made = is_step || planned.place == program::Place::Arena;
    slots_[value] = static_cast<uint32_t>(message_.slots_size());
    internal::ProgramSlot& slot = *message_.add_slots();
    set_slot(*slice, planned.offset, plan_->plan.shapes.values[value], slot);
    slot.set_is_data_set(values[value].kind == program::ValueKind::Batch);
    slot.set_is_made(is_made);
    if (is_step) message_.set_step_slot(slots_[value]);
    given_slots_.push_back(is_made ? nullptr : slice);
    if (!is_made) memory_.push_back(slice);
  }
}

std::shared_ptr<Slice> ProgramRun::slice_of(program::ValueId value) const {
  const program::Place place = plan_->plan.values[value].place;
  if (place == program::Place::Nowhere) return nullptr;
  if (place == program::Place::Arena) return arena_;
  if (plan_->plan.program.values[value].kind == program::ValueKind::Step) return number_;
  const ValueSlices& slices = place == program::Place::Kept ? kept_ : given_.slices;
  const auto slice = slices.find(value);
  return slice == slices.end() ? nullptr : slice->second;
}

void ProgramRun::add_kernels() {
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    if (plan_->plan.kernels[k].is_constant) continue;
    kernels_.push_back(plan_->kernels[k]);
    set_kernel(
        *plan_, k, [&](program::ValueId value) { return slots_.at(value); },
        *message_.add_kernels());
  }
}

/// What happens at the end of a step, and what is read after the last.
void ProgramRun::add_ends() {
  const program::Program& program = entry_->program;
  const auto number = [&](program::ValueId value, internal::ProgramNumber& wire) {
    wire.set_slot(slots_.at(value));
    wire.set_type(static_cast<v1::DataType>(plan_->plan.shapes.values[value].type));
    wire.set_name(program.values[value].name);
  };
  for (const program::Update& update : program.updates) {
    internal::ProgramExchange& exchange = *message_.add_exchanges();
    exchange.set_parameter(slots_.at(update.parameter));
    exchange.set_value(slots_.at(update.value));
    message_.mutable_slots(static_cast<int>(exchange.parameter()))->set_is_result(true);
  }
  for (const program::ValueId value : program.reports)
    number(value, *message_.add_reports());
  if (program.until) number(*program.until, *message_.mutable_until());
  for (const program::ValueId value : program.outputs)
    message_.mutable_slots(static_cast<int>(slots_.at(value)))->set_is_result(true);
}

uint64_t ProgramRun::steps_wanted() const {
  if (request_.epochs() != 0) return request_.epochs() * given_.batches;
  if (request_.steps() != 0) return request_.steps();
  if (entry_->program.until) return kStepsUntil;
  return std::max<uint64_t>(given_.batches, 1);
}

DeviceCall ProgramRun::call_of(std::shared_ptr<const ProgramSteps> steps) const {
  DeviceCall work;
  work.kernel = name_;
  work.program = std::move(steps);
  work.call = call_;
  work.may_retry = work.program->message.exchanges().empty();
  work.overwrites_input = !work.may_retry;
  return work;
}

void ProgramRun::submit() {
  auto steps = std::make_shared<ProgramSteps>();
  steps->kernels = kernels_;
  steps->message = message_;
  steps->given = given_slots_;
  steps->message.set_begin(done_);
  steps->message.set_end(steps_wanted());
  DeviceCall work = call_of(std::move(steps));
  work.tensors = memory_;
  work.done = [self = shared_from_this()](Outcome<DeviceResult> outcome) {
    self->take(std::move(outcome));
  };
  parts_.device.submit(std::move(work));
}

void ProgramRun::fail_run() {
  const Error error = current_error();
  parts_.counters.failed_runs.fetch_add(1);
  watcher_.end(&error);
}

void ProgramRun::take(Outcome<DeviceResult> outcome) {
  try {
    if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
    take_steps(std::get<DeviceResult>(outcome));
    if (ended_ || done_ >= steps_wanted()) return finish();
    submit();
  } catch (...) {
    fail_run();
  }
}

void ProgramRun::take_steps(const DeviceResult& result) {
  const internal::StepsDone& steps = result.steps;
  const size_t reports = series_.size();
  KILN_CHECK(steps.steps() > 0);
  KILN_CHECK(static_cast<size_t>(steps.reports_size()) == steps.steps() * reports);
  for (int i = 0; i < steps.reports_size(); ++i) {
    const size_t report = static_cast<size_t>(i) % reports;
    series_[report].push_back(steps.reports(i));
    sums_[report] += steps.reports(i);
  }
  for (std::vector<double>& series : series_) {
    if (series.size() > 2 * kReportedSteps)
      series.erase(series.begin(), series.end() - kReportedSteps);
  }
  done_ += steps.steps();
  since_ += steps.steps();
  since_seconds_ += result.kernel_seconds;
  kernel_seconds_ += result.kernel_seconds;
  queue_seconds_ += result.queue_seconds;
  ended_ = steps.ended();
  const bool is_pass = given_.batches != 0 && done_ % given_.batches == 0;
  const bool is_late = seconds_between(told_, Clock::now()) > kSecondsBetweenEvents;
  if (is_pass || (given_.batches == 0 && is_late)) tell_progress();
}

void ProgramRun::tell_progress() {
  v1::ProgramEvent event;
  v1::ProgramProgress& progress = *event.mutable_progress();
  progress.set_steps(done_);
  if (given_.batches != 0) progress.set_epochs(done_ / given_.batches);
  for (double& sum : sums_) {
    progress.add_means(sum / static_cast<double>(since_));
    sum = 0;
  }
  progress.set_seconds(since_seconds_);
  since_ = 0;
  since_seconds_ = 0;
  told_ = Clock::now();
  if (!watcher_.event(event)) call_->cancel();
}

void ProgramRun::finish() {
  if (entry_->program.until && !ended_) fail_endless();
  v1::ProgramEvent event;
  v1::ProgramResult& result = *event.mutable_result();
  result.set_steps(done_);
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < entry_->program.outputs.size(); ++i)
    *result.add_outputs() = output(i, inline_bytes);
  for (const std::vector<double>& series : series_) {
    const size_t count =
        std::min(series.size(), kReportedSteps / std::max<size_t>(series_.size(), 1));
    result.add_reports()->mutable_values()->Add(series.end() - static_cast<int64_t>(count),
                                                series.end());
  }
  result.mutable_timings()->set_queue(queue_seconds_);
  result.mutable_timings()->set_kernel(kernel_seconds_);
  result.mutable_timings()->set_compile(plan_->seconds);
  parts_.counters.runs.fetch_add(1);
  watcher_.event(event);
  watcher_.end(nullptr);
}

void ProgramRun::fail_endless() const {
  const program::Value& until = entry_->program.values[*entry_->program.until];
  fail(ErrorKind::InvalidArgument, "PROGRAM_ENDLESS",
       "{} of {} was still 0 after {} steps; the parameters are those of the last step, so run it "
       "again, allow more steps, or look at what it waits for",
       until.name, program::called(entry_->program), done_);
}

v1::Result ProgramRun::output(size_t position, int64_t& inline_bytes) {
  const program::Program& program = entry_->program;
  const program::ValueId value = program.outputs[position];
  const program::ValueType& type = plan_->plan.shapes.values[value];
  const uint8_t* data = arena_->data() + plan_->plan.values[value].offset;
  // What a parameter became lies where the parameter does, now that the step is over.
  for (const program::Update& update : program.updates) {
    if (update.value == value) data = given_.slices.at(update.parameter)->data();
  }
  v1::Result result;
  result.set_parameter(static_cast<uint32_t>(position));
  result.set_type(static_cast<v1::DataType>(type.type));
  result.mutable_shape()->Add(type.shape.begin(), type.shape.end());
  result.set_name(program.values[value].name);
  if (!request_.keep() && inline_bytes + type.bytes() <= kReplyBytes) {
    inline_bytes += type.bytes();
    result.set_data(data, static_cast<size_t>(type.bytes()));
    return result;
  }
  Tensor tensor;
  tensor.tenant = call_->tenant();
  tensor.session = parts_.sessions.owner(request_.session());
  tensor.device = parts_.device.name();
  result.set_device(tensor.device);
  tensor.type = type.type;
  tensor.shape = type.shape;
  tensor.bytes = type.bytes();
  tensor.slice = parts_.arenas->allocate(tensor.bytes);
  if (tensor.bytes > 0) std::memcpy(tensor.slice->data(), data, static_cast<size_t>(tensor.bytes));
  result.set_tensor(parts_.tensors.add(std::move(tensor))->id);
  return result;
}

}  // namespace kiln::server

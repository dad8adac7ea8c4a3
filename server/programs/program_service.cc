// What is asked of programs, checked against the program: which values are given, with which
// shapes, and how many steps that makes.
//
//   x: 50000 rows, batch 1000, epochs 10   ->   50 batches, 500 steps, x of a step is 1000 rows
#include "server/programs/program_service.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/programs/plan_message.h"

namespace kiln::server {

namespace {

using program::Program;
using program::ValueId;
using program::ValueKind;

/// "data set x", for sentences.
std::string what(const Program& program, ValueId value) {
  const program::Value& named = program.values[value];
  switch (named.kind) {
    case ValueKind::Batch: return "data set " + named.name;
    case ValueKind::Parameter: return "parameter " + named.name;
    default: return "input " + named.name;
  }
}

ValueId checked_value(const Program& program, uint32_t value) {
  if (value >= program.values.size()) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE", "value {} is given, but {} has {} values",
         value, program::called(program), program.values.size());
  }
  const ValueKind kind = program.values[value].kind;
  if (kind == ValueKind::Made || kind == ValueKind::Step) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE",
         "{} of {} is given, but {}; give inputs, data sets and parameters",
         program.values[value].name, program::called(program),
         kind == ValueKind::Step ? "it counts the steps" : "a node makes it");
  }
  return value;
}

DType checked_type(const std::string& name, v1::DataType type) {
  const std::optional<DType> known = dtype_from_number(type);
  if (!known) {
    fail(ErrorKind::InvalidArgument, "DTYPE", "{} has an unknown type (number {})", name,
         static_cast<int>(type));
  }
  return *known;
}

/// The rows that one step sees of a data set; counts its batches.
void take_batch(const Program& program, ValueId value, uint64_t batch, program::ValueType& type,
                uint64_t& batches) {
  const std::string name = what(program, value);
  if (type.shape.empty() || type.shape[0] == 0) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_BATCH",
         "{} has no rows, of which a step takes a batch", name);
  }
  const auto rows = static_cast<uint64_t>(type.shape[0]);
  if (batch == 0 || rows % batch != 0) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_BATCH", "{} has {} rows, which {}", name, rows,
         batch == 0 ? std::string("come in batches; say how many rows a batch has")
                    : fmt::format("are no multiple of the batch of {}; leave the last {} out",
                                  batch, rows % batch));
  }
  if (batches != 0 && rows / batch != batches) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_BATCH",
         "{} has {} rows, but another data set of {} has {}", name, rows, program::called(program),
         batches * batch);
  }
  batches = rows / batch;
  type.shape[0] = static_cast<int64_t>(batch);
}

void require_shape(const std::string& name, const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= 0) continue;
    fail(ErrorKind::InvalidArgument, "SHAPE", "dimension {} of {} is {}, but must be at least 0", d,
         name, shape[d]);
  }
}

class Giver {
 public:
  Giver(const ProgramEntry& entry, const v1::RunProgramRequest& request, TensorStore& tensors,
        ArenaPool& arenas, const std::string& tenant)
      : program_(entry.program),
        request_(request),
        tensors_(tensors),
        arenas_(arenas),
        tenant_(tenant) {}

  GivenValues run() {
    for (const v1::GivenValue& wire : request_.given())
      take(wire);
    refuse_shared_parameters();
    if (request_.epochs() != 0 && given_.batches == 0) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_STEPS",
           "{} has no data sets to pass over; say how many steps, not epochs",
           program::called(program_));
    }
    if (request_.epochs() != 0 && request_.steps() != 0) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_STEPS",
           "{} steps and {} epochs are asked for; say one of the two", request_.steps(),
           request_.epochs());
    }
    if (request_.epochs() > UINT32_MAX) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_STEPS", "{} epochs are asked for; the limit is {}",
           request_.epochs(), UINT32_MAX);
    }
    return std::move(given_);
  }

 private:
  void take(const v1::GivenValue& wire) {
    const ValueId value = checked_value(program_, wire.value());
    const std::string name = what(program_, value);
    program::ValueType type;
    std::shared_ptr<Slice> slice;
    if (wire.argument().has_tensor()) {
      const std::shared_ptr<const Tensor> tensor =
          annotate(fmt::format("in {} of {}", name, program::called(program_)),
                   [&] { return tensors_.find(tenant_, wire.argument().tensor()); });
      type = {tensor->type, tensor->shape};
      slice = is_updated(value) ? writable(*tensor) : tensor->slice;
      given_.tensors.push_back(tensor);
    } else if (wire.argument().has_inline_() &&
               program_.values[value].kind != ValueKind::Parameter) {
      type = inline_type(name, wire.argument().inline_());
      slice = upload(name, type, wire.argument().inline_().data());
    } else {
      fail(ErrorKind::InvalidArgument, "PROGRAM_GIVEN", "{} of {} is given no {}", name,
           program::called(program_),
           program_.values[value].kind == ValueKind::Parameter
               ? "tensor, which updates could change"
               : "value");
    }
    if (program_.values[value].kind == ValueKind::Batch)
      take_batch(program_, value, request_.batch(), type, given_.batches);
    if (!given_.types.emplace(value, std::move(type)).second) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_GIVEN", "{} of {} is given twice", name,
           program::called(program_));
    }
    given_.slices[value] = std::move(slice);
  }

  bool is_updated(ValueId value) const {
    return std::ranges::any_of(
        program_.updates, [&](const program::Update& update) { return update.parameter == value; });
  }

  /// What clients may see must not change: the tensor gets other memory with the same contents.
  std::shared_ptr<Slice> writable(const Tensor& tensor) {
    if (!tensor.slice->arena()->is_frozen()) return tensor.slice;
    std::shared_ptr<Slice> slice = arenas_.allocate(tensor.bytes);
    std::memcpy(slice->data(), tensor.slice->data(), static_cast<size_t>(tensor.bytes));
    tensors_.renew(tensor.id, slice);
    return slice;
  }

  static program::ValueType inline_type(const std::string& name, const v1::Inline& wire) {
    program::ValueType type{checked_type(name, wire.type()),
                            {wire.shape().begin(), wire.shape().end()}};
    require_shape(name, type.shape);
    return type;
  }

  std::shared_ptr<Slice> upload(const std::string& name, const program::ValueType& type,
                                const std::string& data) {
    if (static_cast<int64_t>(data.size()) != type.bytes()) {
      fail(ErrorKind::InvalidArgument, "ARGUMENT_BYTES",
           "{} has {} bytes of data, but its shape needs {}", name, data.size(), type.bytes());
    }
    std::shared_ptr<Slice> slice = arenas_.allocate(type.bytes());
    if (!data.empty()) std::memcpy(slice->data(), data.data(), data.size());
    return slice;
  }

  /// A parameter changes during the run: what lies in the same tensor would change with it.
  void refuse_shared_parameters() const {
    for (const program::Update& update : program_.updates) {
      const auto own = given_.slices.find(update.parameter);
      if (own == given_.slices.end()) continue;
      for (const auto& [value, slice] : given_.slices) {
        if (value == update.parameter || slice != own->second) continue;
        fail(ErrorKind::InvalidArgument, "PROGRAM_OVERLAP",
             "{} and {} of {} are one tensor, but the parameter changes; upload it twice",
             what(program_, value), what(program_, update.parameter), program::called(program_));
      }
    }
  }

  const Program& program_;
  const v1::RunProgramRequest& request_;
  TensorStore& tensors_;
  ArenaPool& arenas_;
  const std::string& tenant_;
  GivenValues given_;
};

}  // namespace

std::string ProgramService::define(const v1::DefineProgramRequest& request) {
  return programs_.define(request)->id;
}

void ProgramService::plan(const v1::PlanProgramRequest& request, std::shared_ptr<Call> call,
                          std::function<void(Outcome<v1::PlanProgramResponse>)> done) {
  const std::shared_ptr<const ProgramEntry> entry = programs_.get(request.program_id());
  program::GivenTypes given;
  uint64_t batches = 0;
  for (const v1::GivenShape& wire : request.shapes()) {
    const ValueId value = checked_value(entry->program, wire.value());
    const std::string name = what(entry->program, value);
    program::ValueType type{checked_type(name, wire.type()),
                            {wire.shape().begin(), wire.shape().end()}};
    require_shape(name, type.shape);
    if (entry->program.values[value].kind == ValueKind::Batch)
      take_batch(entry->program, value, request.batch(), type, batches);
    given[value] = std::move(type);
  }
  planner_.plan(entry, given, std::move(call), [entry, done = std::move(done)](auto outcome) {
    if (const Error* error = std::get_if<Error>(&outcome)) return done(*error);
    v1::PlanProgramResponse response;
    write_plan(*std::get<0>(outcome), response);
    done(std::move(response));
  });
}

/// Steps work on what lies in the front end's memory.
void ProgramService::start_at_home(std::shared_ptr<ProgramRun> run,
                                   std::vector<std::shared_ptr<Slice>> slices,
                                   const ProgramWatcher& watcher) {
  parts_.devices.bring_home(std::move(slices),
                            [run = std::move(run), watcher](Outcome<std::monostate> outcome) {
                              try {
                                if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
                                run->start();
                              } catch (...) {
                                const Error error = current_error();
                                watcher.end(&error);
                              }
                            });
}

void ProgramService::run(const v1::RunProgramRequest& request, std::shared_ptr<Call> call,
                         ProgramWatcher watcher) {
  const std::shared_ptr<const ProgramEntry> entry = programs_.get(request.program_id());
  parts_.sessions.require(call->tenant(), request.session());
  const DeviceQueue& first = parts_.devices.of(target_of(*entry));
  first.require_present();
  first.require_time(call->tenant());
  GivenValues given = Giver(*entry, request, parts_.tensors, *parts_.arenas, call->tenant()).run();
  DeviceQueue& device = parts_.devices.for_call(target_of(*entry), request.device(), given.tensors,
                                                program::called(entry->program));
  const program::GivenTypes types = given.types;
  planner_.plan(entry, types, call,
                [this, entry, request, call, &device, given = std::move(given),
                 watcher = std::move(watcher)](auto outcome) mutable {
                  try {
                    if (const Error* error = std::get_if<Error>(&outcome)) throw *error;
                    const RunParts parts{.tensors = parts_.tensors,
                                         .sessions = parts_.sessions,
                                         .arenas = parts_.arenas,
                                         .device = device,
                                         .kept = kept_,
                                         .counters = parts_.counters};
                    std::vector<std::shared_ptr<Slice>> slices;
                    for (const auto& [value, slice] : given.slices)
                      slices.push_back(slice);
                    start_at_home(
                        std::make_shared<ProgramRun>(parts, entry, std::get<0>(outcome), request,
                                                     std::move(given), call, watcher),
                        std::move(slices), watcher);
                  } catch (...) {
                    const Error error = current_error();
                    watcher.end(&error);
                  }
                });
}

}  // namespace kiln::server

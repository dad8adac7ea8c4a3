#pragma once

#include <memory>
#include <string>

#include "server/engine/devices.h"
#include "server/programs/program_run.h"

namespace kiln::server {

/// Programs: keeps them, plans them, runs them. Any thread may call it; nothing of it waits.
class ProgramService {
 public:
  struct Parts {
    TensorStore& tensors;
    Sessions& sessions;
    std::shared_ptr<ArenaPool> arenas;
    Devices& devices;
    Counters& counters;
  };
  ProgramService(Parts parts, PlannerParts planning)
      : parts_(std::move(parts)), planner_(std::move(planning)) {}

  // Each throws, or tells its outcome once.
  std::string define(const v1::DefineProgramRequest& request);
  void plan(const v1::PlanProgramRequest& request, std::shared_ptr<Call> call,
            std::function<void(Outcome<v1::PlanProgramResponse>)> done);
  void run(const v1::RunProgramRequest& request, std::shared_ptr<Call> call,
           ProgramWatcher watcher);

  /// Does what was begun; nothing may be asked after it.
  void stop() { planner_.stop(); }

 private:
  void start_at_home(std::shared_ptr<ProgramRun> run, std::vector<std::shared_ptr<Slice>> slices,
                     const ProgramWatcher& watcher);

  const Parts parts_;
  ProgramTable programs_{256, size_t{256} << 20};
  KeptValues kept_;
  Planner planner_;
};

}  // namespace kiln::server

#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/program/graph.h"
#include "kiln/v1/program.pb.h"
#include "runtime/core/target_kind.h"

namespace kiln::server {

/// A program that a client defined: its wiring is checked.
struct ProgramEntry {
  std::string id;
  program::Program program;
  v1::Target target;
  v1::CompileOptions options;
  std::string request;  // the bytes that defined it
};

/// What its kernels are compiled for.
TargetKind target_of(const ProgramEntry& entry);

/// The programs that clients can name, the last used ones. One that fell out is NotFound, and
/// clients define it again.
class ProgramTable {
 public:
  ProgramTable(size_t limit, size_t limit_bytes) : limit_(limit), limit_bytes_(limit_bytes) {}

  /// The entry for a request: one that is known is not decoded again. Throws InvalidArgument.
  std::shared_ptr<const ProgramEntry> define(const v1::DefineProgramRequest& request);
  /// Throws NotFound PROGRAM.
  std::shared_ptr<const ProgramEntry> get(const std::string& id);

 private:
  struct Slot {
    std::shared_ptr<const ProgramEntry> entry;
    std::list<std::string>::iterator use;
  };
  std::shared_ptr<const ProgramEntry> find(const std::string& id);

  const size_t limit_;
  const size_t limit_bytes_;
  std::mutex mutex_;
  size_t bytes_ = 0;
  std::list<std::string> uses_;  // ids, last used first
  std::map<std::string, Slot> slots_;
};

}  // namespace kiln::server

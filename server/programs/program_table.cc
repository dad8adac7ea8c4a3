// Programs by a hash of what defined them, so that a client that defines one again finds it with
// its plans. Bounded by number and by bytes; the least recently used goes.
#include "server/programs/program_table.h"

#include "compiler/language/wire/canonical.h"
#include "server/programs/decode_program.h"

namespace kiln::server {

TargetKind target_of(const ProgramEntry& entry) {
  return entry.target.name().empty() ? TargetKind::Llvm : target_from_name(entry.target.name());
}

std::shared_ptr<const ProgramEntry> ProgramTable::define(const v1::DefineProgramRequest& request) {
  std::string bytes = request.SerializeAsString();
  const std::string id = language::id_of(bytes);
  if (std::shared_ptr<const ProgramEntry> known = find(id)) return known;
  auto entry = std::make_shared<ProgramEntry>();
  entry->id = id;
  entry->program = decode_program(request.program());
  program::graph_of(entry->program);
  entry->target = request.target();
  entry->options = request.options();
  entry->request = std::move(bytes);

  const std::lock_guard lock(mutex_);
  const auto known = slots_.find(id);
  if (known != slots_.end()) return known->second.entry;
  uses_.push_front(id);
  slots_[id] = {entry, uses_.begin()};
  bytes_ += entry->request.size();
  while (slots_.size() > 1 && (slots_.size() > limit_ || bytes_ > limit_bytes_)) {
    const auto oldest = slots_.find(uses_.back());
    bytes_ -= oldest->second.entry->request.size();
    slots_.erase(oldest);
    uses_.pop_back();
  }
  return entry;
}

std::shared_ptr<const ProgramEntry> ProgramTable::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(id);
  if (at == slots_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, at->second.use);
  return at->second.entry;
}

std::shared_ptr<const ProgramEntry> ProgramTable::get(const std::string& id) {
  if (std::shared_ptr<const ProgramEntry> entry = find(id)) return entry;
  fail(ErrorKind::NotFound, "PROGRAM", "there is no program {} (any more); define it again",
       id.substr(0, 80));
}

}  // namespace kiln::server

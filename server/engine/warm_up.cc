// The kernels of a list, compiled after the start of the daemon. It listens meanwhile, so that a
// client who needs another kernel need not wait, but health checks and /readyz say NOT_SERVING:
// what divides calls among daemons sends none here before they are fast.
//
//   list of 40, 3 compiled  ->  "3 of the 40 kernels of the warm-up list are compiled"
#include "server/engine/warm_up.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <spdlog/spdlog.h>

#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/called.h"
#include "server/errors.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

std::optional<std::string> contents_of(const fs::path& path) {
  if (fs::is_directory(path)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string contents{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) return std::nullopt;
  return contents;
}

std::vector<fs::path> files_of(const std::string& list, const fs::path& folder) {
  std::vector<fs::path> files;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty()) files.push_back(folder / line);
  }
  return files;
}

void add_text(const std::string& text, const fs::path& file,
              std::vector<v1::CompileRequest>& requests) {
  for (const language::TextKernel& parsed : language::parse_text(text, file.string())) {
    v1::CompileRequest& request = requests.emplace_back();
    *request.mutable_definition() = language::encode(parsed.kernel.definition);
    *request.mutable_source_map() = language::encode(parsed.kernel.names);
    request.mutable_target()->set_name("llvm");
    for (const auto& [target, schedule] : parsed.schedules) {
      if (target == "cpu") *request.mutable_schedule() = language::encode(schedule);
    }
  }
}

void add_module(const std::string& bytes, std::vector<v1::CompileRequest>& requests) {
  v1::SavedModule module;
  if (!module.ParseFromString(bytes) || module.format() != "kiln module 1") {
    fail(ErrorKind::InvalidArgument, "MODULE_FILE", "it is no module that export_library saved");
  }
  for (const v1::SavedKernel& saved : module.kernels()) {
    if (!requests.emplace_back().ParseFromString(saved.request()))
      fail(ErrorKind::InvalidArgument, "MODULE_FILE", "the module is damaged; build it again");
  }
}

void add_file(const fs::path& file, std::vector<v1::CompileRequest>& requests) {
  const size_t before = requests.size();
  try {
    const std::optional<std::string> contents = contents_of(file);
    if (!contents) fail(ErrorKind::NotFound, "FILE", "it cannot be read");
    file.extension() == ".kiln" ? add_text(*contents, file, requests)
                                : add_module(*contents, requests);
  } catch (...) {
    requests.resize(before);
    spdlog::warn("{} of the warm-up list is left out: {}", file.string(),
                 current_error().message());
  }
}

}  // namespace

std::vector<v1::CompileRequest> read_warm_up_list(const std::string& path) {
  const std::optional<std::string> list = contents_of(path);
  if (!list) {
    fail(ErrorKind::InvalidArgument, "CONFIG", "cannot read the warm-up list in {}", path);
  }
  std::vector<v1::CompileRequest> requests;
  for (const fs::path& file : files_of(*list, fs::path(path).parent_path()))
    add_file(file, requests);
  return requests;
}

void WarmUp::begin(std::vector<v1::CompileRequest> requests) {
  {
    const std::lock_guard lock(mutex_);
    begun_ = Clock::now();
    all_ += requests.size();
    for (v1::CompileRequest& request : requests)
      waiting_.push_back(std::move(request));
  }
  go_on();
}

std::string WarmUp::problem() const {
  const std::lock_guard lock(mutex_);
  const size_t ended = compiled_ + found_ + failed_;
  if (ended == all_) return "";
  return fmt::format("{} of the {} kernels of the warm-up list are compiled", ended, all_);
}

/// One thread at a time, so that those which are found at once do not call one another.
void WarmUp::go_on() {
  std::unique_lock lock(mutex_);
  if (is_going_) return;  // who does sees what has changed
  is_going_ = true;
  while (!waiting_.empty() && running_ < at_a_time_) {
    const v1::CompileRequest request = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    const std::string kernel = request.source_map().kernel();
    try {
      Caller nobody;
      nobody.priority = Priority::Low;
      compile_(request, std::make_shared<Call>(std::move(nobody)),
               [this, kernel](const Outcome<CompileResult>& outcome) { end(kernel, outcome); });
    } catch (...) {
      end(kernel, current_error());
    }
    lock.lock();
  }
  is_going_ = false;
}

void WarmUp::end(const std::string& kernel, const Outcome<CompileResult>& outcome) {
  {
    const std::lock_guard lock(mutex_);
    --running_;
    if (const Error* const error = std::get_if<Error>(&outcome)) {
      ++failed_;
      // A daemon that ends need not name all that it leaves.
      if (error->reason() == "DRAINING") {
        failed_ += waiting_.size();
        waiting_.clear();
        return;
      }
      spdlog::warn("{} of the warm-up list is not compiled: {}", called(kernel), error->message());
    } else {
      const bool is_new = std::get<CompileResult>(outcome).level == v1::CACHE_LEVEL_COMPILED;
      ++(is_new ? compiled_ : found_);
    }
    if (compiled_ + found_ + failed_ == all_) {
      spdlog::info("the warm-up list: {} compiled, {} there already, {} failed, in {:.1f} s",
                   compiled_, found_, failed_, seconds_between(begun_, Clock::now()));
    }
  }
  go_on();
}

}  // namespace kiln::server

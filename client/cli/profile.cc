// `kiln profile`: one call of a kernel as a trace over all processes that took part, on one clock,
// for ui.perfetto.dev or chrome://tracing, and where its time went.
//
//   client   |---- call ----------------|
//   kilnd      |-- run f -------------|
//   worker        |- call f -------|
//   its cpu:0       |- kernel f -|
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

#include "client/cli/files.h"
#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cli/timeline.h"
#include "client/cli/waiting.h"
#include "runtime/core/host_clock.h"

namespace kiln::cli {
namespace {

std::int64_t now_nanoseconds() { return nanoseconds(std::chrono::steady_clock::now()); }

/// The id of the trace that this process is part of; one of its own where it is part of none.
std::string trace_of_process() {
  const char* const given = std::getenv("TRACEPARENT");
  if (given != nullptr && std::string_view(given).size() >= 55) {
    return std::string(given).substr(3, 32);
  }
  std::random_device random;
  std::string trace;
  for (int i = 0; i < 4; ++i)
    trace += fmt::format("{:08x}", random());
  const std::string parent = fmt::format("00-{}-{:08x}{:08x}-01", trace, random(), random() | 1U);
  ::setenv("TRACEPARENT", parent.c_str(), 1);  // before the connection reads it
  return trace;
}

/// The events of Chrome's trace format: names of processes and tracks, then spans in microseconds
/// from the first one.
nlohmann::ordered_json chrome_trace(const std::vector<Span>& spans) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  std::vector<unsigned> processes;
  std::vector<std::pair<unsigned, std::string>> tracks;
  const auto first = std::ranges::min_element(spans, {}, &Span::begin)->begin;
  const auto name = [&](const char* what, unsigned pid, std::size_t track, const std::string& as) {
    events.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", track}, {"args", {{"name", as}}}});
  };
  for (const Span& span : spans) {
    if (std::ranges::find(processes, span.pid) == processes.end()) {
      processes.push_back(span.pid);
      name("process_name", span.pid, 0, span.process);
    }
    const std::pair track(span.pid, span.track);
    if (std::ranges::find(tracks, track) == tracks.end()) {
      tracks.push_back(track);
      name("thread_name", span.pid, tracks.size(), span.track);
    }
    const auto at = std::ranges::find(tracks, track) - tracks.begin() + 1;
    events.push_back({{"name", span.name},
                      {"ph", "X"},
                      {"pid", span.pid},
                      {"tid", at},
                      {"ts", static_cast<double>(span.begin - first) / 1e3},
                      {"dur", static_cast<double>(span.end - span.begin) / 1e3}});
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ns"}};
}

/// A row for each span: how long it took, and within this call its share.
std::vector<std::vector<std::string>> spans_table(const std::vector<Span>& spans,
                                                  const Span& call) {
  std::vector<std::vector<std::string>> rows{{"SPAN", "PROCESS", "PID", "TOOK", "OF THE CALL"}};
  for (const Span& span : spans) {
    const auto took = static_cast<double>(span.end - span.begin);
    const bool is_within = span.begin >= call.begin && span.end <= call.end;
    const double share =
        took / static_cast<double>(std::max<std::int64_t>(call.end - call.begin, 1));
    rows.push_back({span.name, span.process + (span.track == "client" ? "" : " " + span.track),
                    std::to_string(span.pid), time_text(took * 1e-9),
                    is_within ? fmt::format("{:.1f} %", 100 * share) : ""});
  }
  return rows;
}

nlohmann::ordered_json spans_json(const std::vector<Span>& spans) {
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  for (const Span& span : spans) {
    objects.push_back({{"name", span.name},
                       {"process", span.process},
                       {"pid", span.pid},
                       {"track", span.track},
                       {"begin", span.begin},
                       {"end", span.end}});
  }
  return objects;
}

struct ProfileCommand {
  KernelChoice kernel;
  CallChoice call;
  std::string trace_file;
  std::string html;

  int run(const Common& common) const {
    const std::string trace = trace_of_process();
    const Definition definition = kernel.load(call.target());
    const std::vector<Argument> inputs = call.load(definition);
    const CallOptions options = call.options(definition);
    std::vector<Span> spans;
    const auto timed = [&](const std::string& name, const auto& action) {
      const std::int64_t begin = now_nanoseconds();
      auto result = action();
      spans.push_back({.name = name,
                       .process = "kiln",
                       .pid = static_cast<unsigned>(::getpid()),
                       .track = "client",
                       .begin = begin,
                       .end = now_nanoseconds()});
      return result;
    };
    const Connection connection = timed("connect", [&] { return common.connect(); });
    const Kernel compiled = timed(
        "build", [&] { return build_here(connection, definition, call.build_options(kernel)); });
    // The first touches what was never touched.
    timed("first call", [&] { return compiled.call(inputs, options, SourceLocation::none()); });
    timed("call", [&] { return compiled.call(inputs, options, SourceLocation::none()); });
    const Span last = spans.back();
    for (Span& span : connection.spans(trace))
      spans.push_back(std::move(span));
    std::ranges::stable_sort(spans, {}, &Span::begin);
    deliver(common, compiled.name(), spans, last);
    return kDone;
  }

 private:
  void deliver(const Common& common, const std::string& name, const std::vector<Span>& spans,
               const Span& last) const {
    const std::vector<std::vector<std::string>> rows = spans_table(spans, last);
    if (!trace_file.empty()) {
      write_through(trace_file,
                    [&](std::ostream& out) { out << chrome_trace(spans).dump(1) << "\n"; });
    }
    if (!html.empty()) {
      write_through(html, [&](std::ostream& out) {
        out << timeline_page(fmt::format("{} on {}", name, call.device), spans, last, rows);
      });
    }
    if (common.json) {
      std::cout << nlohmann::ordered_json{{"kernel", name}, {"spans", spans_json(spans)}}.dump(2)
                << "\n";
      return;
    }
    std::cout << table(rows);
    if (!trace_file.empty()) {
      std::cout << fmt::format("{} spans in {}: open it in ui.perfetto.dev or chrome://tracing\n",
                               spans.size(), trace_file);
    }
  }
};

}  // namespace

void add_profile(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "profile",
                                  "where the time of a call goes, in all processes that take part");
  const auto state = std::make_shared<ProfileCommand>();
  state->kernel.add_to(command);
  state->call.add_to(command);
  command.add_option("--trace", state->trace_file,
                     "write a trace for ui.perfetto.dev or chrome://tracing");
  command.add_option("--html", state->html,
                     "draw the timeline: one HTML file that needs nothing beside it");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli

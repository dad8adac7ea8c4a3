// The status page: what an operator looks at first, in the order of the questions asked then: does
// it serve, on what, what waits, what is kept, what went wrong. Names and messages are users', so
// all text is escaped. The browser loads it again every few seconds.
#include "server/http/status_page.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include <fmt/chrono.h>

namespace kiln::server {

namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width"><title>kilnd</title><style>
:root { color-scheme: light dark; --line: #8884; --good: #2a8a4a; --bad: #c0392b; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin-top: 1rem; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; min-width: 8rem; }
.card b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td.number { font-variant-numeric: tabular-nums; text-align: right; }
.good { color: var(--good); } .bad { color: var(--bad); } .quiet { opacity: .7; }
</style></head><body>
)";

std::string escaped(std::string_view text) {
  std::string html;
  for (const char letter : text) {
    switch (letter) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      default: html += letter;
    }
  }
  return html;
}

std::string bytes_text(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit)
    amount /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string card(std::string_view title, std::string_view value) {
  return fmt::format("<div class=\"card\">{}<b>{}</b></div>\n", title, value);
}

/// A table, or a sentence when it would be empty.
class Table {
 public:
  Table(std::string_view title, std::vector<std::string_view> columns) {
    html_ = fmt::format("<h2>{}</h2>\n", title);
    head_ = "<div class=\"scroll\"><table><tr>";
    for (const std::string_view column : columns)
      head_ += fmt::format("<th>{}</th>", column);
    head_ += "</tr>\n";
  }
  void row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (const std::string& cell : cells)
      rows_ += fmt::format("<td>{}</td>", cell);
    rows_ += "</tr>\n";
  }
  std::string html(std::string_view if_empty) const {
    if (rows_.empty()) return html_ + fmt::format("<p class=\"quiet\">{}</p>\n", if_empty);
    return html_ + head_ + rows_ + "</table></div>\n";
  }

 private:
  std::string html_;
  std::string head_;
  std::string rows_;
};

std::string state_text(bool good, std::string_view text) {
  return fmt::format("<span class=\"{}\">{}</span>", good ? "good" : "bad", escaped(text));
}

std::string devices(const v1::DescribeResponse& now, const Engine& engine) {
  Table table("Devices and compilers", {"Name", "State", "Arch", "Waiting or running", "About"});
  std::map<std::string, size_t> lengths;
  for (const Engine::Queue& queue : engine.queues())
    lengths[queue.name] = queue.length;
  for (const v1::Device& device : now.devices()) {
    table.row({escaped(device.name()), state_text(device.state() == "ready", device.state()),
               escaped(device.arch()), std::to_string(lengths[device.name()]),
               escaped(device.description())});
  }
  const bool answers = engine.compiler_answers();
  table.row({"compiler", state_text(answers, answers ? "ready" : "starting"), "",
             std::to_string(lengths["compiler"]), ""});
  return table.html("There is none.");
}

std::string caches(const v1::DescribeResponse& now) {
  Table table("Compiled kernels", {"From", "Found", "Holds"});
  const auto& counters = now.counters();
  const auto row = [&](const char* level, const char* hits, const char* bytes) {
    table.row({level, std::to_string(counters.at(hits)),
               bytes != nullptr ? bytes_text(counters.at(bytes)) : ""});
  };
  row("memory", "memory_hits", "memory_bytes");
  row("disk", "disk_hits", "disk_bytes");
  row("shared", "shared_hits", nullptr);
  row("compiler", "compiles", nullptr);
  return table.html("");
}

std::string components(const v1::DescribeResponse& now) {
  Table table("Parts", {"Name", "", "Found"});
  for (const v1::Component& part : now.components()) {
    table.row({escaped(part.name()), state_text(part.ok(), part.ok() ? "ok" : "not ok"),
               escaped(part.message())});
  }
  return table.html("");
}

std::string jobs(const Engine& engine) {
  constexpr size_t kShown = 20;
  std::vector<v1::JobState> all = engine.jobs().list_all();
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.submitted() > b.submitted(); });
  if (all.size() > kShown) all.resize(kShown);
  Table table("Latest jobs", {"Job", "Kernel", "Phase", "Seconds", "Message"});
  for (const v1::JobState& job : all) {
    const std::string phase = v1::JobPhase_Name(job.phase()).substr(10);
    table.row({escaped(job.job()), escaped(job.kernel()),
               state_text(job.phase() != v1::JOB_PHASE_FAILED, phase),
               fmt::format("{:.3f}", job.seconds()), escaped(job.message())});
  }
  return table.html("There are none.");
}

std::string errors(const Engine& engine) {
  Table table("Latest errors", {"Time (UTC)", "Call", "Reason", "Message", "Request"});
  for (const RecentError& error : engine.errors().list()) {
    const std::time_t when = std::chrono::system_clock::to_time_t(error.when);
    table.row({fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(when)), escaped(error.method),
               escaped(error.reason), escaped(error.message), escaped(error.request)});
  }
  return table.html("No call has failed.");
}

}  // namespace

std::string status_page(const Engine& engine, const GrpcServer& server) {
  const v1::DescribeResponse now = engine.describe();
  const auto& counters = now.counters();
  const std::string problem = server.why_not_serving();
  std::string html = kHead;
  html +=
      fmt::format("<h1>kilnd {} on {}</h1>\n<p>{}</p>\n", now.version(), escaped(server.address()),
                  state_text(problem.empty(), problem.empty() ? "ready" : problem));
  html += "<div class=\"cards\">\n";
  html += card("calls in progress", std::to_string(server.active()));
  html += card("kernels run", std::to_string(counters.at("runs")));
  html += card("failed", std::to_string(counters.at("failed_runs")));
  html += card("clients", std::to_string(counters.at("sessions")));
  html += card("tensors", std::to_string(counters.at("tensors")));
  html += card("tensor memory", bytes_text(counters.at("tensor_bytes")));
  html += card("worker restarts",
               std::to_string(counters.at("worker_restarts") + counters.at("compiler_restarts")));
  html += "</div>\n";
  html += devices(now, engine) + caches(now) + jobs(engine) + errors(engine) + components(now);
  return html +
         "<p class=\"quiet\">Numbers over time: <a href=\"/metrics\">/metrics</a></p>\n"
         "</body></html>\n";
}

}  // namespace kiln::server

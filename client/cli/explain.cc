// `kiln explain REASON`: the wrong programs of docs/errors.md that have a reason, each with its
// sentence and what to write instead. The page is part of the program, so it is that of this
// version, and no service is asked. A file, or the name of an operator, is explain_kernel.cc's.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/cli/error_pages.h"
#include "client/cli/explain_kernel.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/fail.h"
#include "compiler/language/suggest.h"

namespace kiln::cli {
namespace {

using Pages = std::map<std::string_view, std::vector<const ErrorPage*>>;

Pages by_reason() {
  Pages pages;
  for (const ErrorPage& page : error_pages())
    pages[page.reason].push_back(&page);
  return pages;
}

/// As reasons are written, whatever the case: split-factor is SPLIT_FACTOR.
std::string as_reason(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return word;
}

nlohmann::ordered_json programs_json(const std::vector<const ErrorPage*>& programs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ErrorPage* page : programs)
    list.push_back({{"title", page->title}, {"text", page->text}});
  return list;
}

int list_reasons(const Pages& pages, bool json) {
  if (json) {
    nlohmann::ordered_json all;
    for (const auto& [reason, programs] : pages)
      all[std::string(reason)] = programs.size();
    std::cout << all.dump(2) << "\n";
    return kDone;
  }
  std::vector<std::vector<std::string>> rows{{"REASON", "PROGRAMS", "FIRST"}};
  for (const auto& [reason, programs] : pages) {
    rows.push_back({std::string(reason), std::to_string(programs.size()),
                    std::string(programs.front()->title)});
  }
  std::cout << table(rows);
  return kDone;
}

int explain(const std::string& word, bool json) {
  const Pages pages = by_reason();
  if (word.empty()) return list_reasons(pages, json);
  const std::string reason = as_reason(word);
  const auto found = pages.find(reason);
  if (found == pages.end()) {
    std::vector<std::string_view> known;
    for (const auto& [each, programs] : pages)
      known.push_back(each);
    const std::string_view near = language::nearest(reason, known);
    // In small letters it was rather meant as an operator, whose neighbours are named then.
    if (near.empty() && word != reason) load_operator(word);
    client::detail::fail(
        ErrorKind::NotFound, "REASON", "no error has the reason {}{}", reason,
        near.empty() ? "; kiln explain lists all reasons" : fmt::format("; did you mean {}", near));
  }
  if (json) {
    std::cout << nlohmann::ordered_json{{"reason", reason},
                                        {"programs", programs_json(found->second)}}
                     .dump(2)
              << "\n";
    return kDone;
  }
  std::string text;
  for (const ErrorPage* page : found->second) {
    text += fmt::format("{}{}\n{}\n\n{}", text.empty() ? "" : "\n", page->title,
                        std::string(page->title.size(), '-'), page->text);
  }
  std::cout << text;
  return kDone;
}

}  // namespace

void add_explain(CLI::App& app, Program& program) {
  CLI::App& command = add_command(
      app, program, "explain",
      "where the time of a kernel goes, with its code; or what an error means, by its reason");
  const auto state = std::make_shared<ExplainKernel>();
  command.add_option("WHAT", state->kernel.file,
                     "a .kiln file (- for standard input), an operator of Kiln's (matmul), or a "
                     "REASON as --json and .reason give it; without one all reasons are listed");
  state->add_to(command);
  command.callback([&program, state] {
    program.run = [&program, state] {
      const std::string& what = state->kernel.file;
      if (!what.empty() && ExplainKernel::is_kernel(what)) return state->run(program.common);
      if (!state->html.empty() && what.empty()) {
        throw UsageError("--html draws a kernel: name its file, or an operator");
      }
      return explain(what, program.common.json);
    };
  });
}

}  // namespace kiln::cli

// The page of `kiln explain --html`. A line of code knows its line of the loops (data-l); the
// script does nothing but mark those that are equal, and brings them into sight when one is
// clicked.
#include "client/cli/explain_page.h"

#include <fmt/format.h>

#include "client/cli/markup.h"

namespace kiln::cli {
namespace {

constexpr const char* kCodeStyle = R"(
:root { --mark: #ffe08a; }
@media (prefers-color-scheme: dark) { :root { --mark: #6b5300; } }
tr:last-child td { font-weight: bold; }
.code { display: flex; gap: .8rem; height: 78vh; }
.column { flex: 1 1 0; min-width: 12rem; overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
.column h2 { position: sticky; top: 0; margin: 0; padding: .3rem .6rem; font-size: .95rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.column div { font: 12px/1.45 ui-monospace, monospace; white-space: pre; padding: 0 .6rem; }
.column div[data-l] { cursor: pointer; }
.column div.on { background: var(--mark); }
.column div.none { opacity: .55; }
.column i { opacity: .5; font-style: normal; display: inline-block; width: 2.2em; }
)";

constexpr const char* kScript = R"(<script>
let shown = null;
const mark = (line, on) => {
  for (const each of document.querySelectorAll('[data-l="' + line + '"]')) each.classList.toggle("on", on);
};
const show = (line) => {
  if (line === shown) return;
  if (shown !== null) mark(shown, false);
  shown = line;
  mark(line, true);
};
document.addEventListener("mouseover", (event) => {
  const line = event.target.closest("[data-l]");
  if (line) show(line.dataset.l);
});
document.addEventListener("click", (event) => {
  const line = event.target.closest("[data-l]");
  if (!line) return;
  for (const column of document.querySelectorAll(".column")) {
    if (column.contains(line)) continue;
    const first = column.querySelector('[data-l="' + line.dataset.l + '"]');
    if (first) column.scrollTo({ top: first.offsetTop - column.offsetTop - 60, behavior: "smooth" });
  }
});
</script>
)";

std::string marked_line(int from, const std::string& text) {
  if (from == 0) return fmt::format("<div class=\"none\">{} </div>\n", escaped(text));
  return fmt::format("<div data-l=\"{}\">{} </div>\n", from, escaped(text));
}

std::string columns_of(const AlignedCode& code) {
  std::string html = "<div class=\"code\">\n<section class=\"column\"><h2>loops</h2>\n";
  for (std::size_t i = 0; i < code.loops.size(); ++i) {
    html +=
        fmt::format("<div data-l=\"{0}\"><i>{0}</i>{1} </div>\n", i + 1, escaped(code.loops[i]));
  }
  html += "</section>\n";
  for (const CodeColumn& column : code.columns) {
    html += fmt::format("<section class=\"column\"><h2>{}</h2>\n", escaped(column.name));
    for (const CodeColumn::Line& line : column.lines)
      html += marked_line(line.from, line.text);
    html += "</section>\n";
  }
  return html + "</div>\n";
}

}  // namespace

std::string explain_page(const Explanation& explanation) {
  std::string body = html_table(explanation.table);
  for (const std::string& note : explanation.notes)
    body += fmt::format("<p>{}</p>\n", escaped(note));
  if (!explanation.code.loops.empty()) body += columns_of(explanation.code) + kScript;
  return html_page(explanation.title, kCodeStyle, body);
}

}  // namespace kiln::cli

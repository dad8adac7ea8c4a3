// What the pages of the command line have in common: one HTML file each, with its style in it, so
// that it can be sent to somebody.
#include "client/cli/markup.h"

#include <cstdlib>

#include <fmt/format.h>

namespace kiln::cli {
namespace {

constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --bar: #f4b183; --line: #8886; --ink: #222; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --bar: #8a4b1f; --ink: #ddd; --paper: #181a1b; } }
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.2rem; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.3rem; }
h2 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
table { border-collapse: collapse; margin: .8rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; font-family: monospace; }
td.bar { background: linear-gradient(90deg, var(--bar) var(--share), transparent var(--share)); }
)";

std::string cell(const std::string& text, std::string_view tag) {
  if (text.ends_with(" %")) {
    return fmt::format("<{0} class=\"bar\" style=\"--share: {1:.0f}%\">{2}</{0}>", tag,
                       std::strtod(text.c_str(), nullptr), escaped(text));
  }
  return fmt::format("<{0}>{1}</{0}>", tag, escaped(text));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& text : rows[i])
      html += cell(text, i == 0 ? "th" : "td");
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string html_page(const std::string& title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}{2}</style>\n</head><body>\n<h1>{0}</h1>\n{3}</body></html>\n",
      escaped(title), kPageStyle, style, body);
}

}  // namespace kiln::cli

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// The text as HTML and SVG have it between tags and in attributes.
std::string escaped(std::string_view text);

/// Rows as a table, the first its heading. A cell that ends in " %" is drawn as a bar, too.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

/// A page that needs nothing beside it, light or dark as the reader has it. `style` is CSS of its
/// own; it may use the colours --ink, --paper and --line.
std::string html_page(const std::string& title, std::string_view style, std::string_view body);

}  // namespace kiln::cli

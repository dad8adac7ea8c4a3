#include "tests/analysis/scene.h"

#include "compiler/ir/build.h"
#include "compiler/ir/parse.h"

namespace kiln::testing {
namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    if (std::string piece = trimmed(text.substr(0, end)); !piece.empty()) result.push_back(piece);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace

Scene::Scene(std::string_view around, std::string_view text, std::string_view type) {
  std::string body;
  const std::vector<std::string> places = pieces(around);
  for (const std::string& place : places) {
    if (place.starts_with("if ")) {
      body += place + " {\n";
    } else {
      const size_t sign = place.find(" < ");
      body += "for " + place.substr(0, sign) + " in 0.." + place.substr(sign + 3) + " {\n";
    }
  }
  body += "O[0] = " + std::string(text) + "\n" + std::string(places.size(), '}');
  kernel = ir::parse("fn f[m, n, l, a](O: " + std::string(type) +
                     "[1], A: int64[m], D: int32[m], F: float32[m], U: uint8[m]) {" + body + "}");

  for (int i = 0; i < 3; ++i)
    facts.push_range(kernel.sizes[i], ir::index(0), nullptr);
  ir::Stmt stmt = kernel.body;
  while (true) {
    if (const ir::For* loop = ir::as<ir::For>(stmt)) {
      facts.push_range(loop->var, ir::index(0), loop->extent);
      ranges.push_back({loop->var, ir::index(0), loop->extent});
      stmt = loop->body;
    } else if (const ir::If* node = ir::as<ir::If>(stmt)) {
      facts.push_condition(node->condition);
      stmt = node->then_body;
    } else {
      break;
    }
  }
  expr = ir::as<ir::Store>(stmt)->value;
}

}  // namespace kiln::testing

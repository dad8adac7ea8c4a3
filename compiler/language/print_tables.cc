// Prints the tables of the language as JSON: kiln-tables > tables.json
// or the kernels of files, for clients that read no text: kiln-tables FILE.kiln ... > kernels.json
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/language/tables/hints.h"
#include "compiler/language/tables/operator.h"
#include "compiler/language/tables/step.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/error.h"

namespace kiln::language {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(TypeRule rule) {
  switch (rule) {
    case TypeRule::Same: return "same";
    case TypeRule::SameInt: return "same_int";
    case TypeRule::SameFloat: return "same_float";
    case TypeRule::SameBits: return "same_bits";
    case TypeRule::Compare: return "compare";
    case TypeRule::Logic: return "logic";
    case TypeRule::Choose: return "choose";
    case TypeRule::FloatTest: return "float_test";
    case TypeRule::IntToInt: return "int_to_int";
    case TypeRule::Bits: return "bits";
    case TypeRule::FromBits: return "from_bits";
  }
  return "";
}

/// "tag output readers", or "none".
std::string uses_of(const StepRow& row) {
  using namespace step_fields;  // NOLINT: its words
  std::string words;
  const auto add = [&](uint8_t field, std::string_view word) {
    if (!row.uses(field)) return;
    if (!words.empty()) words += ' ';
    words += word;
  };
  add(Parts, "parts");
  add(Tag, "tag");
  add(At, "at");
  add(Output, "output");
  add(Readers, "readers");
  add(Tags, "tags");
  add(Layout, "layout");
  return words.empty() ? "none" : words;
}

Json operators() {
  Json rows = Json::array();
  for (const OperatorRow& row : operator_table()) {
    rows.push_back({{"name", row.spelling},
                    {"arity", row.arity},
                    {"type_rule", name_of(row.type_rule)},
                    {"infix", row.infix},
                    {"accuracy", row.accuracy},
                    {"doc", row.doc}});
  }
  return rows;
}

Json combiners() {
  Json rows = Json::array();
  for (const CombinerRow& row : combiner_table()) {
    rows.push_back({{"name", row.spelling},
                    {"operator", row_of(row.op).spelling},
                    {"identity", row.identity},
                    {"doc", row.doc}});
  }
  return rows;
}

/// A count of -1 is "any number".
Json steps() {
  Json rows = Json::array();
  for (const StepRow& row : step_table()) {
    rows.push_back({{"name", row.spelling},
                    {"axes", row.axes},
                    {"factors", row.factors},
                    {"uses", uses_of(row)},
                    {"value", row.value},
                    {"stage", row.stage},
                    {"defines", row.defines},
                    {"doc", row.doc}});
  }
  return rows;
}

Json pragmas() {
  Json rows = Json::array();
  for (const PragmaRow& row : pragma_table()) {
    const std::string_view use = row.use == PragmaUse::Acts   ? "acts"
                                 : row.use == PragmaUse::Idle ? "idle"
                                                              : "refused";
    rows.push_back({{"name", row.spelling}, {"use", use}, {"most", row.most}, {"doc", row.doc}});
  }
  return rows;
}

Json intrinsics() {
  Json rows = Json::array();
  for (const IntrinsicRow& row : intrinsic_table()) {
    rows.push_back({{"name", row.spelling}, {"feature", row.feature}, {"doc", row.doc}});
  }
  return rows;
}

Json dtypes() {
  Json rows = Json::array();
  for (int number = 1; const auto type = dtype_from_number(number); ++number) {
    const std::string_view kind = is_float(*type)          ? "float"
                                  : is_signed_int(*type)   ? "int"
                                  : is_unsigned_int(*type) ? "uint"
                                                           : "bool";
    rows.push_back({{"name", kiln::name_of(*type)},
                    {"number", number},
                    {"kind", kind},
                    {"bits", bits_of(*type)},
                    {"bytes", size_of(*type)}});
  }
  return rows;
}

Json tables() {
  Json tables = {
      {"operators", operators()},     {"combiners", combiners()},      {"steps", steps()},
      {"pragmas", pragmas()},         {"intrinsics", intrinsics()},    {"dtypes", dtypes()},
      {"thread_tags", Json::array()}, {"memory_scopes", Json::array()}};
  for (const std::string_view tag : thread_tags()) {
    tables["thread_tags"].push_back(tag);
  }
  for (const std::string_view scope : memory_scopes()) {
    tables["memory_scopes"].push_back(scope);
  }
  return tables;
}

std::string hex(const std::string& bytes) {
  const auto* first = reinterpret_cast<const unsigned char*>(bytes.data());
  return fmt::format("{:02x}", fmt::join(first, first + bytes.size(), ""));
}

/// The messages of the wire as hexadecimal bytes, without places in the file.
Json kernels_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::NotFound, "FILE", "{} cannot be read", path.string());
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Json rows = Json::array();
  for (const TextKernel& parsed : parse_text(text, path.filename().string())) {
    v1::SourceMap names = encode(parsed.kernel.names);
    names.clear_files();
    names.clear_stage_lines();
    rows.push_back({{"name", parsed.kernel.names.kernel},
                    {"family", path.stem().string()},
                    {"definition", hex(encode(parsed.kernel.definition).SerializeAsString())},
                    {"names", hex(names.SerializeAsString())}});
  }
  return rows;
}

}  // namespace
}  // namespace kiln::language

int main(int argc, char** argv) {
  using namespace kiln::language;
  try {
    Json printed = argc == 1 ? tables() : Json::array();
    for (int i = 1; i < argc; ++i) {
      for (Json& row : kernels_of(argv[i])) {
        printed.push_back(std::move(row));
      }
    }
    std::printf("%s\n", printed.dump(1).c_str());
    return 0;
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

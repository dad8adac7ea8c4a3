// Prints the tables of the language as JSON: kiln-tables > tables.json
#include <cstdio>

#include <nlohmann/json.hpp>

#include "compiler/language/operator.h"
#include "compiler/language/step.h"

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
  }
  return "";
}

std::string_view name_of(StepUses uses) {
  switch (uses) {
    case StepUses::None: return "none";
    case StepUses::Parts: return "parts";
    case StepUses::Tag: return "tag";
    case StepUses::At: return "at";
  }
  return "";
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
                    {"uses", name_of(row.uses)},
                    {"defines", row.defines},
                    {"doc", row.doc}});
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

}  // namespace
}  // namespace kiln::language

int main() {
  using namespace kiln::language;
  Json tables = {{"operators", operators()},
                 {"combiners", combiners()},
                 {"steps", steps()},
                 {"dtypes", dtypes()},
                 {"thread_tags", Json::array()}};
  for (const std::string_view tag : thread_tags()) {
    tables["thread_tags"].push_back(tag);
  }
  std::printf("%s\n", tables.dump(1).c_str());
}

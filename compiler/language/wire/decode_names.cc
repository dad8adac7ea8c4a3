// Names from the wire, one for every position: missing ones are made up, and what would spoil a
// message or a terminal is replaced. Names never decide what is computed.
#include <algorithm>
#include <unordered_map>

#include "compiler/language/utf8.h"
#include "compiler/language/wire/decode_parts.h"
#include "runtime/core/called.h"

namespace kiln::language {
namespace {

// PATH_MAX of Linux, in bytes.
constexpr int kLongestPath = 4'096;

class NameDecoder {
 public:
  NameDecoder(const v1::SourceMap& wire, const v1::Definition& definition, const Limits& limits)
      : wire_(wire), definition_(definition), limits_(limits) {}

  SourceMap decode() {
    SourceMap names;
    names.kernel = name(wire_.kernel(), limits_.name_bytes);
    if (names.kernel.empty()) names.kernel = kUnnamedKernel;
    names.variables = list(wire_.variables(), definition_.variables_size(), "n");
    names.stages = list(wire_.stages(), definition_.stages_size(), "tensor");
    names.axes = list(wire_.axes(), definition_.axes_size(), "i");
    check_limit("the source map", "files", wire_.files_size(), limits_.stages);
    for (const std::string& file : wire_.files()) {
      names.files.push_back(name(file, kLongestPath));
    }
    names.stage_lines.resize(static_cast<size_t>(definition_.stages_size()));
    const int lines = std::min(wire_.stage_lines_size(), definition_.stages_size());
    for (int i = 0; i < lines; ++i) {
      names.stage_lines[i] = {wire_.stage_lines(i).file(),
                              std::min(wire_.stage_lines(i).line(), 0x7FFFFFFFU)};
    }
    for (const v1::TensorName& tensor : wire_.tensors()) {
      const TensorId id = {tensor.tensor().stage(), tensor.tensor().output()};
      // Names of nothing do no harm.
      if (id.stage >= names.stages.size() || tensor.name().empty()) continue;
      names.tensors.insert_or_assign(id, name(tensor.name(), limits_.name_bytes));
    }
    for (int i = 0; i < definition_.reducers_size(); ++i)
      names.reducers.push_back(reducer_names(i));
    return names;
  }

 private:
  SourceMap::ReducerNames reducer_names(int id) {
    const v1::ReducerNames given =
        id < wire_.reducers_size() ? wire_.reducers(id) : v1::ReducerNames();
    SourceMap::ReducerNames names = {name(given.name(), limits_.name_bytes), {}};
    if (names.name.empty()) names.name = fmt::format("reducer{}", id);
    const int values = std::min(definition_.reducers(id).types_size(), limits_.outputs);
    names.parameters = list(given.parameters(), 2 * values, "value");
    return names;
  }

  std::string name(const std::string& wire, int longest) {
    check_limit("a name", "bytes", static_cast<int64_t>(wire.size()), longest);
    return harmless(wire);
  }

  std::vector<std::string> list(const google::protobuf::RepeatedPtrField<std::string>& wire,
                                int count, std::string_view prefix) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      std::string text = i < wire.size() ? name(wire[i], limits_.name_bytes) : "";
      if (text.empty()) text = fmt::format("{}{}", prefix, i);
      names.push_back(std::move(text));
    }
    return names;
  }

  const v1::SourceMap& wire_;
  const v1::Definition& definition_;
  const Limits& limits_;
};

}  // namespace

SourceMap decode_names(const v1::SourceMap& wire, const v1::Definition& definition,
                       const Limits& limits) {
  return NameDecoder(wire, definition, limits).decode();
}

}  // namespace kiln::language

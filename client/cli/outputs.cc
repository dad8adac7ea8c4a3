// Where outputs and timings go: files, a pipe, a terminal, or JSON.
#include "client/cli/outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "client/cli/files.h"
#include "client/cli/kernel_file.h"
#include "client/cli/npy.h"
#include "client/cli/report.h"
#include "client/cpp/array_text.h"

namespace kiln::cli {
namespace {

/// Arrays with more elements than this are not written out in JSON, which would be gigabytes.
constexpr std::size_t kJsonElements = 1 << 24;

/// JSON has no word for what is no finite number.
nlohmann::json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::string shape_text(const Array& array) {
  return fmt::format("{}[{}]", name_of(array.dtype()), fmt::join(array.shape(), ", "));
}

template <typename T>
nlohmann::json numbers(const Array& array) {
  nlohmann::json values = nlohmann::json::array();
  for (std::size_t i = 0; i < array.size(); ++i) {
    T value;
    std::memcpy(&value, array.bytes().data() + i * sizeof value, sizeof value);
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(json_number(value));
    } else {
      values.push_back(value);
    }
  }
  return values;
}

nlohmann::json small_floats(const Array& array) {
  const std::size_t bytes = size_of(array.dtype());
  nlohmann::json values = nlohmann::json::array();
  for (std::size_t i = 0; i < array.size(); ++i) {
    values.push_back(
        json_number(client::detail::small_float(array.bytes().data() + i * bytes, array.dtype())));
  }
  return values;
}

/// The elements in row-major order; null for arrays that are too large.
nlohmann::json values_of(const Array& array) {
  if (array.size() > kJsonElements) return nullptr;
  switch (array.dtype()) {
    case DType::Bool: return numbers<bool>(array);
    case DType::Int8: return numbers<std::int8_t>(array);
    case DType::Int16: return numbers<std::int16_t>(array);
    case DType::Int32: return numbers<std::int32_t>(array);
    case DType::Int64: return numbers<std::int64_t>(array);
    case DType::UInt8: return numbers<std::uint8_t>(array);
    case DType::UInt16: return numbers<std::uint16_t>(array);
    case DType::UInt32: return numbers<std::uint32_t>(array);
    case DType::UInt64: return numbers<std::uint64_t>(array);
    case DType::Float32: return numbers<float>(array);
    case DType::Float64: return numbers<double>(array);
    default: return small_floats(array);
  }
}

}  // namespace

void OutputChoice::add_to(CLI::App& command) {
  command
      .add_option("--out", files,
                  "where an output goes: NAME=FILE.npy, - for standard output; without it, it is "
                  "printed")
      ->allow_extra_args(false);
  command.add_flag("--timings", timings, "print where the time went");
}

void OutputChoice::check(const std::vector<std::string>& outputs, const std::string& kernel,
                         bool json) const {
  std::string piped;
  for (const std::string& text : files) {
    const auto [name, path] = split_pair(text, "--out");
    if (path == kStandard) {
      if (json || !piped.empty()) {
        throw UsageError(
            fmt::format("{} and {} cannot both go to standard output; give one of them "
                        "a file",
                        json ? "--json" : piped, name));
      }
      piped = name;
    }
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) {
      throw UsageError(
          fmt::format("{} has no output {}; it has {}", kernel, name, fmt::join(outputs, ", ")));
    }
  }
}

bool OutputChoice::has_file(const std::string& output) const {
  return std::any_of(files.begin(), files.end(), [&](const std::string& text) {
    return split_pair(text, "--out").first == output;
  });
}

void OutputChoice::deliver(const std::vector<NamedArray>& outputs, const Timings& timing,
                           bool json) const {
  std::map<std::string, std::string> paths;
  for (const std::string& text : files)
    paths.insert(split_pair(text, "--out"));
  const bool is_piped =
      std::ranges::any_of(paths, [](const auto& each) { return each.second == kStandard; });
  // An array on standard output has it for itself.
  std::ostream& text = is_piped ? std::cerr : std::cout;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NamedArray& output : outputs) {
    nlohmann::ordered_json entry{{"name", output.name},
                                 {"type", name_of(output.value.dtype())},
                                 {"shape", output.value.shape()}};
    if (const auto path = paths.find(output.name); path != paths.end()) {
      write_npy(path->second, output.value);
      entry["file"] = path->second;
    } else if (json) {
      entry["values"] = values_of(output.value);
    } else {
      text << output.name << ": " << shape_text(output.value) << "\n" << output.value << "\n";
    }
    list.push_back(std::move(entry));
  }
  if (json) {
    const nlohmann::ordered_json object{{"outputs", std::move(list)}, {"timings", to_json(timing)}};
    std::cout << object.dump(2) << "\n";
  } else if (timings) {
    text << "timings: " << text_of(timing) << "\n";
  }
}

std::string time_text(double seconds) {
  if (seconds > 0 && seconds < 9.95e-6) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string text_of(const Timings& timings) {
  const std::string cache = timings.cache.empty() ? "" : fmt::format(" ({})", timings.cache);
  return fmt::format("queue {}, compile {}{}, upload {}, kernel {}, download {}",
                     time_text(timings.queue), time_text(timings.compile), cache,
                     time_text(timings.upload), time_text(timings.kernel),
                     time_text(timings.download));
}

nlohmann::ordered_json to_json(const Timings& timings) {
  return {{"queue", timings.queue},   {"compile", timings.compile},   {"upload", timings.upload},
          {"kernel", timings.kernel}, {"download", timings.download}, {"cache", timings.cache}};
}

}  // namespace kiln::cli

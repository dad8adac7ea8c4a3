// The saved form of an artifact: fields in order, little-endian, behind a header with version,
// length and checksum. Written and read by one list of overloads each. The checksum finds damage;
// what is read is checked all the same, since anybody may write an artifact with the right one.
#include "runtime/core/artifact.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include <xxhash.h>

#include "runtime/core/error.h"

namespace kiln {
namespace {

static_assert(std::endian::native == std::endian::little, "artifacts are written as memory lies");

constexpr std::string_view kMagic{"KILNART\0", 8};
constexpr size_t kHeaderBytes = 8 + 4 + 8 + 16;  // magic, version, length, checksum

/// In the canonical byte order of xxHash, so that it is the same on every host.
std::string checksum_of(std::string_view contents) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(contents.data(), contents.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

[[noreturn]] void fail_corrupt(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT", "the saved artifact is damaged: {}", what);
}

/// Appends fields; what Reader reads, in the same order. Lists and texts begin with their length.
class Writer {
 public:
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put<uint64_t>(text.size());
    out_ += text;
  }
  void put(const SizeExpr::Node& node) {
    put(node.op);
    put(node.operand);
  }
  void put(const SizeExpr& expr) { put(expr.nodes); }
  void put(const Parameter& parameter) {
    put(parameter.type);
    put(parameter.shape);
    put(parameter.is_output);
  }
  void put(const SizeRequirement& requirement) {
    put(requirement.kind);
    put(requirement.parameter);
    put(requirement.dimension);
    put(requirement.value);
    put(requirement.minimum);
    put(requirement.stage);
  }
  void put(const RuntimeCheck& check) {
    put(check.stage);
    put(check.tensor);
    put(check.dimension);
  }
  void put(const Launch& launch) {
    put(launch.entry);
    put(launch.grid);
    put(launch.block);
    put(launch.shared_bytes);
  }
  void put(const LaunchLoop& loop) {
    put(loop.first);
    put(loop.end);
    put(loop.count);
  }
  void put(const Variant& variant) {
    put(variant.condition);
    put(variant.launches);
    put(variant.loops);
    put(variant.workspace_bytes);
    put(variant.workspace_bytes_per_thread);
    put(variant.tile_launches);
    put(variant.tile_code);
    put(variant.tile_workspace_bytes);
  }
  template <typename T>
  void put(const std::vector<T>& items) {
    put<uint64_t>(items.size());
    for (const T& item : items) {
      put(item);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what Writer wrote; fails on bytes that end early or hold a value out of range.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_integral_v<T>
  void get(T& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
  void get(bool& value) {
    uint8_t byte = 0;
    get(byte);
    if (byte > 1) fail_corrupt("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  /// An enumeration whose values are 0 .. last.
  template <typename T>
  void get_enum(T& value, T first, T last) {
    std::underlying_type_t<T> number{};
    get(number);
    if (number < static_cast<decltype(number)>(first) ||
        number > static_cast<decltype(number)>(last)) {
      fail_corrupt("a value is out of range");
    }
    value = static_cast<T>(number);
  }
  void get(std::string& text) {
    uint64_t size = 0;
    get(size);
    text = take(size);
  }
  void get(SizeExpr::Node& node) {
    get_enum(node.op, SizeExpr::Op::Constant, SizeExpr::Op::Not);
    get(node.operand);
  }
  void get(SizeExpr& expr) { get(expr.nodes); }
  void get(Parameter& parameter) {
    get_enum(parameter.type, DType::Bool, DType::Float8E5M2);
    get(parameter.shape);
    get(parameter.is_output);
  }
  void get(SizeRequirement& requirement) {
    using Kind = SizeRequirement::Kind;
    get_enum(requirement.kind, Kind::ScanExtent, Kind::ScanExtent);
    get(requirement.parameter);
    get(requirement.dimension);
    get(requirement.value);
    get(requirement.minimum);
    get(requirement.stage);
  }
  void get(RuntimeCheck& check) {
    get(check.stage);
    get(check.tensor);
    get(check.dimension);
  }
  void get(Launch& launch) {
    get(launch.entry);
    get(launch.grid);
    get(launch.block);
    get(launch.shared_bytes);
  }
  void get(LaunchLoop& loop) {
    get(loop.first);
    get(loop.end);
    get(loop.count);
  }
  void get(Variant& variant) {
    get(variant.condition);
    get(variant.launches);
    get(variant.loops);
    get(variant.workspace_bytes);
    get(variant.workspace_bytes_per_thread);
    get(variant.tile_launches);
    get(variant.tile_code);
    get(variant.tile_workspace_bytes);
  }
  template <typename T>
  void get(std::vector<T>& items) {
    uint64_t count = 0;
    get(count);
    // Each item takes a byte at least, so a count past the rest is a lie; items are appended as
    // they are read, so a false count cannot make us allocate.
    if (count > rest_.size()) fail_corrupt("a list is longer than what is left");
    items.clear();
    for (uint64_t i = 0; i < count; ++i) {
      get(items.emplace_back());
    }
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail_corrupt("it ends early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

void check_expr(const SizeExpr& expr, int64_t scalar_count) {
  if (!expr.is_well_formed(scalar_count)) fail_corrupt("a size expression is malformed");
}

void check_launch(const Launch& launch, int64_t scalars) {
  if (launch.grid.size() > 3 || launch.block.size() > 3)
    fail_corrupt("a launch has more than three dimensions");
  for (const std::vector<SizeExpr>* extents : {&launch.grid, &launch.block}) {
    for (const SizeExpr& extent : *extents)
      check_expr(extent, scalars);
  }
  check_expr(launch.shared_bytes, scalars);
}

/// What readers of an artifact rely on without looking again.
void check_consistent(const Artifact& artifact) {
  if (artifact.size_count < 0) fail_corrupt("the number of sizes is negative");
  int64_t scalars = artifact.size_count;
  for (const Parameter& parameter : artifact.parameters) {
    for (const SizeExpr& extent : parameter.shape) {
      check_expr(extent, artifact.size_count);
    }
    scalars += static_cast<int64_t>(parameter.shape.size());
  }
  for (const SizeRequirement& requirement : artifact.requirements) {
    check_expr(requirement.value, artifact.size_count);
    check_expr(requirement.minimum, artifact.size_count);
    if (requirement.parameter == -1) continue;
    const auto parameter = static_cast<size_t>(requirement.parameter);
    if (requirement.parameter < 0 || parameter >= artifact.parameters.size() ||
        requirement.dimension < 0 ||
        static_cast<size_t>(requirement.dimension) >= artifact.parameters[parameter].shape.size()) {
      fail_corrupt("a requirement names no dimension");
    }
  }
  for (const Variant& variant : artifact.variants) {
    check_expr(variant.condition, scalars);
    check_expr(variant.workspace_bytes, scalars);
    check_expr(variant.workspace_bytes_per_thread, scalars);
    check_expr(variant.tile_workspace_bytes, scalars);
    for (const std::vector<Launch>* launches : {&variant.launches, &variant.tile_launches}) {
      for (const Launch& launch : *launches)
        check_launch(launch, scalars);
    }
    if (variant.tile_code.size() != variant.tile_launches.size())
      fail_corrupt("a launch of code made of tiles has none");
    int32_t done = 0;
    for (const LaunchLoop& loop : variant.loops) {
      const auto launches = static_cast<int64_t>(variant.launches.size());
      if (loop.first < done || loop.end <= loop.first || loop.end > launches)
        fail_corrupt("a loop is not over launches");
      done = loop.end;
      check_expr(loop.count, scalars);
    }
  }
}

}  // namespace

std::string serialize(const Artifact& artifact) {
  Writer contents;
  contents.put(artifact.target);
  contents.put(artifact.arch);
  contents.put(artifact.features);
  contents.put(artifact.code);
  contents.put(artifact.ptx);
  contents.put(artifact.size_count);
  contents.put(artifact.parameters);
  contents.put(artifact.requirements);
  contents.put(artifact.variants);
  contents.put(artifact.checks);
  contents.put(artifact.report);
  const std::string body = contents.take();

  Writer header;
  header.put(kArtifactVersion);
  header.put<uint64_t>(body.size());
  return std::string(kMagic) + header.take() + checksum_of(body) + body;
}

Artifact deserialize_artifact(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) fail_corrupt("it ends early");
  if (bytes.substr(0, kMagic.size()) != kMagic) fail_corrupt("it does not begin as one");
  Reader header(bytes.substr(kMagic.size(), 12));
  uint32_t version = 0;
  uint64_t length = 0;
  header.get(version);
  header.get(length);
  if (version != kArtifactVersion) {
    fail(ErrorKind::InvalidArgument, "ARTIFACT_VERSION",
         "the saved artifact has format version {}, but this build reads version {}", version,
         kArtifactVersion);
  }
  const std::string_view body = bytes.substr(kHeaderBytes);
  if (length != body.size()) fail_corrupt("its length is not what it says");
  if (bytes.substr(kMagic.size() + 12, 16) != checksum_of(body)) {
    fail_corrupt("its checksum is wrong");
  }

  Artifact artifact;
  Reader reader(body);
  reader.get_enum(artifact.target, TargetKind::Llvm, TargetKind::Interpreter);
  reader.get(artifact.arch);
  reader.get(artifact.features);
  reader.get(artifact.code);
  reader.get(artifact.ptx);
  reader.get(artifact.size_count);
  reader.get(artifact.parameters);
  reader.get(artifact.requirements);
  reader.get(artifact.variants);
  reader.get(artifact.checks);
  reader.get(artifact.report);
  if (!reader.at_end()) fail_corrupt("bytes are left at its end");
  check_consistent(artifact);
  return artifact;
}

}  // namespace kiln

// The file of a compiled kernel: a header with version, length and checksum, names, the artifact as
// artifact.cc has it. The checksum finds damage, not malice: the file holds machine code, which its
// reader runs.
//
//   "KILNFILE", version (4 bytes), length (8), XXH3-128 of the rest (16), names, artifact
#include "runtime/core/exported_kernel.h"

#include <cstring>

#include <xxhash.h>

#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNFILE";
constexpr std::string_view kCacheMagic = "KILNKART";
constexpr size_t kLengthAt = 12;
constexpr size_t kChecksumAt = 20;
constexpr size_t kHeaderBytes = 36;

std::string checksum_of(std::string_view contents) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(contents.data(), contents.size()));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

template <typename T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out += text;
}
void put_texts(std::string& out, const std::vector<std::string>& texts) {
  put<uint64_t>(out, texts.size());
  for (const std::string& text : texts)
    put_text(out, text);
}

/// Reads what the above wrote.
class TextReader {
 public:
  TextReader(std::string_view bytes, std::string_view file) : rest_(bytes), file_(file) {}

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT",
         "{} is damaged: {}; write it again with kiln compile -o", file_, what);
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) refuse("it ends early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint64_t>())); }
  std::vector<std::string> texts() {
    const auto count = number<uint64_t>();
    std::vector<std::string> all;
    for (uint64_t i = 0; i < count; ++i)
      all.push_back(text());
    return all;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::string_view file_;
};

void check_kind(std::string_view bytes, std::string_view name) {
  if (bytes.starts_with(kCacheMagic)) {
    fail(ErrorKind::InvalidArgument, "ARTIFACT_FILE",
         "{} is an entry of a daemon's cache, which lacks the names of its kernel; write an "
         "artifact with kiln compile FILE.kiln -o NAME.kart",
         name);
  }
  // Of a file that was cut within its first word, all that is there agrees.
  if (bytes.empty() || !kMagic.starts_with(bytes.substr(0, kMagic.size()))) {
    fail(ErrorKind::InvalidArgument, "ARTIFACT_FILE",
         "{} is no compiled kernel; write one with kiln compile FILE.kiln -o NAME.kart", name);
  }
}

/// What is behind a sound header.
std::string_view checked_body(std::string_view bytes, std::string_view name) {
  check_kind(bytes, name);
  TextReader header(bytes, name);
  header.take(kMagic.size());
  const auto version = header.number<uint32_t>();
  if (version != kExportVersion) {
    fail(ErrorKind::InvalidArgument, "ARTIFACT_VERSION",
         "{} has format version {}, but this build reads version {}; write it again with kiln "
         "compile -o",
         name, version, kExportVersion);
  }
  const auto length = header.number<uint64_t>();
  const std::string_view checksum = header.take(kHeaderBytes - kChecksumAt);
  const std::string_view body = bytes.substr(kHeaderBytes);
  if (body.size() < length) header.refuse("it ends early");
  if (body.size() > length) header.refuse("bytes are left at its end");
  if (checksum != checksum_of(body)) header.refuse("its checksum is wrong");
  return body;
}

/// The error of what lies within the file, told as one of the file.
[[noreturn]] void refuse_inner(const Error& error, std::string_view name) {
  if (error.reason() != "ARTIFACT_VERSION") {
    fail(ErrorKind::InvalidArgument, error.reason(), "{}: {}", name, error.message());
  }
  fail(ErrorKind::InvalidArgument, "ARTIFACT_VERSION",
       "{} is of another version of Kiln: {}; write it again with kiln compile -o", name,
       error.message());
}

}  // namespace

std::string serialize(const ExportedKernel& kernel) {
  if (!traits_of(kernel.artifact.target).is_compiled) {
    fail(
        ErrorKind::Unsupported, "EXPORT",
        "{} is built for the {}, which runs loops inside of the service; build it for llvm or cuda "
        "to export it",
        kernel.names.kernel, name_of(kernel.artifact.target));
  }
  std::string body;
  put_text(body, kernel.names.kernel);
  put_texts(body, kernel.names.parameters);
  put_texts(body, kernel.names.sizes);
  put_texts(body, kernel.names.stages);
  body += serialize(kernel.artifact);

  std::string file(kMagic);
  put(file, kExportVersion);
  static_assert(kMagic.size() + sizeof kExportVersion == kLengthAt);
  put<uint64_t>(file, body.size());
  return file + checksum_of(body) + body;
}

ExportedKernel deserialize_exported(std::string_view bytes, std::string_view name) {
  TextReader reader(checked_body(bytes, name), name);
  ExportedKernel kernel;
  kernel.names.kernel = reader.text();
  kernel.names.parameters = reader.texts();
  kernel.names.sizes = reader.texts();
  kernel.names.stages = reader.texts();
  try {
    kernel.artifact = deserialize_artifact(reader.rest());
  } catch (const Error& error) {
    refuse_inner(error, name);
  }
  const bool is_named =
      kernel.names.parameters.size() == kernel.artifact.parameters.size() &&
      kernel.names.sizes.size() == static_cast<size_t>(kernel.artifact.size_count);
  if (!is_named || !traits_of(kernel.artifact.target).is_compiled)
    reader.refuse("its parts do not fit together");
  return kernel;
}

}  // namespace kiln

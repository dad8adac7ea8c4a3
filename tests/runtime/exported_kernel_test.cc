#include "runtime/core/exported_kernel.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/support/expect_error.h"

namespace kiln {
namespace {

using testing::expect_error;

constexpr const char* kName = "f.kart";
constexpr size_t kVersionAt = 8;
constexpr size_t kContentsAt = 36;

ExportedKernel example() {
  ExportedKernel kernel;
  kernel.names = {
      .kernel = "twice", .parameters = {"A", "B"}, .sizes = {"n"}, .stages = {"A", "B"}};
  kernel.artifact.arch = "x86-64-v3";
  kernel.artifact.features = {"avx2", "fma"};
  kernel.artifact.code = "the code";
  kernel.artifact.size_count = 1;
  kernel.artifact.parameters = {{DType::Float32, {SizeExpr::scalar(0)}, false},
                                {DType::Float32, {SizeExpr::scalar(0)}, true}};
  kernel.artifact.variants = {Variant{.launches = {Launch{"kiln_compact", {}, {}}}}};
  return kernel;
}

void expect_refused(const std::string& bytes, const std::string& reason,
                    const std::string& sentence) {
  EXPECT_EQ(expect_error([&] { deserialize_exported(bytes, kName); }, ErrorKind::InvalidArgument,
                         sentence)
                .reason(),
            reason);
}

TEST(ExportedKernel, ComesBackAsItWasWritten) {
  ExportedKernel kernel = example();
  kernel.names.lines = {{"a.py", 3}, {"a.py", 4}};  // of the author's machine: these stay there
  const ExportedKernel read = deserialize_exported(serialize(kernel), kName);
  EXPECT_EQ(read.artifact, kernel.artifact);
  EXPECT_EQ(read.names.kernel, "twice");
  EXPECT_EQ(read.names.parameters, kernel.names.parameters);
  EXPECT_EQ(read.names.sizes, kernel.names.sizes);
  EXPECT_EQ(read.names.stages, kernel.names.stages);
  EXPECT_TRUE(read.names.lines.empty());
}

/// In one sentence each, which names the file: header, names and artifact alike.
TEST(ExportedKernel, IsRefusedWithAnyBitFlipped) {
  const std::string bytes = serialize(example());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      deserialize_exported(damaged, kName);
      ADD_FAILURE() << "bit " << bit;
    } catch (const Error& error) {
      const size_t at = bit / 8;
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      EXPECT_EQ(error.reason(), at < kVersionAt       ? "ARTIFACT_FILE"
                                : at < kVersionAt + 4 ? "ARTIFACT_VERSION"
                                                      : "ARTIFACT_CORRUPT");
      EXPECT_TRUE(error.message().starts_with(kName)) << error.message();
    }
  }
}

TEST(ExportedKernel, IsRefusedWhenCutShortOrGrown) {
  const std::string bytes = serialize(example());
  expect_refused(
      "", "ARTIFACT_FILE",
      "f.kart is no compiled kernel; write one with kiln compile FILE.kiln -o NAME.kart");
  for (size_t length = 1; length < bytes.size(); ++length) {
    expect_refused(bytes.substr(0, length), "ARTIFACT_CORRUPT",
                   "f.kart is damaged: it ends early; write it again with kiln compile -o");
  }
  expect_refused(bytes + "x", "ARTIFACT_CORRUPT",
                 "f.kart is damaged: bytes are left at its end; write it again with kiln compile "
                 "-o");
}

TEST(ExportedKernel, IsToldFromOtherFiles) {
  expect_refused(
      "kernel twice(A: float32[n]) {}", "ARTIFACT_FILE",
      "f.kart is no compiled kernel; write one with kiln compile FILE.kiln -o NAME.kart");
  expect_refused(
      "KILNKART and more", "ARTIFACT_FILE",
      "f.kart is an entry of a daemon's cache, which lacks the names of its kernel; write "
      "an artifact with kiln compile FILE.kiln -o NAME.kart");
}

TEST(ExportedKernel, OfAnotherVersionIsToldApart) {
  std::string bytes = serialize(example());
  bytes[kVersionAt] = 7;
  expect_refused(bytes, "ARTIFACT_VERSION",
                 "f.kart has format version 7, but this build reads version 1; write it again with "
                 "kiln compile -o");
}

TEST(ExportedKernel, OfAnotherVersionOfArtifactsSaysSo) {
  std::string bytes = serialize(example());
  const size_t inner = bytes.find("KILNART");
  ASSERT_NE(inner, std::string::npos);
  bytes[inner + 8] = 9;
  XXH128_canonical_t checksum;
  XXH128_canonicalFromHash(&checksum,
                           XXH3_128bits(bytes.data() + kContentsAt, bytes.size() - kContentsAt));
  bytes.replace(kContentsAt - sizeof checksum.digest, sizeof checksum.digest,
                reinterpret_cast<const char*>(checksum.digest), sizeof checksum.digest);
  expect_refused(
      bytes, "ARTIFACT_VERSION",
      "f.kart is of another version of Kiln: the saved artifact has format version 9, but "
      "this build reads version 6; write it again with kiln compile -o");
}

TEST(ExportedKernel, NamesEachParameterAndSize) {
  ExportedKernel kernel = example();
  kernel.names.parameters.pop_back();
  expect_refused(serialize(kernel), "ARTIFACT_CORRUPT",
                 "f.kart is damaged: its parts do not fit together; write it again with kiln "
                 "compile -o");
}

TEST(ExportedKernel, HasNoLoopsOfTheInterpreter) {
  ExportedKernel kernel = example();
  kernel.artifact.target = TargetKind::Interpreter;
  const Error error = expect_error([&] { serialize(kernel); }, ErrorKind::Unsupported,
                                   "twice is built for the interpreter, which runs loops inside of "
                                   "the service; build it for llvm "
                                   "or cuda to export it");
  EXPECT_EQ(error.reason(), "EXPORT");
}

}  // namespace
}  // namespace kiln

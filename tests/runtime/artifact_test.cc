#include "runtime/core/artifact.h"

#include <random>

#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/support/expect_error.h"

namespace kiln {
namespace {

using testing::expect_error;

constexpr size_t kChecksumAt = 20;
constexpr size_t kContentsAt = 36;

std::string with_valid_checksum(std::string bytes) {
  XXH128_canonical_t checksum;
  XXH128_canonicalFromHash(&checksum,
                           XXH3_128bits(bytes.data() + kContentsAt, bytes.size() - kContentsAt));
  bytes.replace(kChecksumAt, sizeof checksum.digest, reinterpret_cast<const char*>(checksum.digest),
                sizeof checksum.digest);
  return bytes;
}

SizeExpr size(int64_t index) { return SizeExpr::scalar(index); }

Artifact example() {
  Artifact artifact;
  artifact.arch = "znver5";
  artifact.features = {"avx2", "fma"};
  artifact.code = std::string(
      "\x7f"
      "ELF\0\1\2",
      7);
  artifact.size_count = 2;
  artifact.parameters = {
      {DType::Float32, {size(0), size(1)}, false},
      {DType::BFloat16,
       {SizeExpr::binary(SizeExpr::Op::Add, size(0), SizeExpr::constant(-1))},
       true},
  };
  artifact.requirements = {
      {SizeRequirement::Kind::ScanExtent, 0, 1, size(1), SizeExpr::constant(1), 4}};
  Variant variant;
  variant.condition = SizeExpr::binary(SizeExpr::Op::Equal, size(3), SizeExpr::constant(1));
  variant.launches = {{"compact",
                       {size(0)},
                       {SizeExpr::constant(256), SizeExpr::constant(2)},
                       SizeExpr::constant(64)}};
  variant.launches.push_back(variant.launches[0]);
  variant.loops = {{1, 2, size(1)}};
  variant.tile_code = {
      "\x7f"
      "ELF of tiles"};
  variant.tile_launches = {{"tiles", {size(0)}, {SizeExpr::constant(1)}, SizeExpr::constant(0)}};
  variant.tile_workspace_bytes = SizeExpr::constant(256);
  variant.workspace_bytes = size(1);
  variant.workspace_bytes_per_thread = SizeExpr::constant(128);
  artifact.variants = {variant, Variant{}};
  artifact.checks = {{1, 2, 3}, {-1, 0, 0}};
  artifact.report = R"({"guards": 0})";
  return artifact;
}

TEST(Artifact, ComesBackAsItWasSaved) {
  EXPECT_EQ(deserialize_artifact(serialize(example())), example());
  EXPECT_EQ(deserialize_artifact(serialize(Artifact{})), Artifact{});
}

TEST(Artifact, IsRefusedWhereLaunchesOfTilesHaveNoCode) {
  Artifact artifact = example();
  artifact.variants[0].tile_code.clear();
  const Error error =
      expect_error([&] { deserialize_artifact(serialize(artifact)); }, ErrorKind::InvalidArgument,
                   "the saved artifact is damaged: a launch of code made of tiles has none");
  EXPECT_EQ(error.reason(), "ARTIFACT_CORRUPT");
}

TEST(Artifact, IsRefusedWhereALoopIsNotOverLaunches) {
  for (const LaunchLoop& loop :
       {LaunchLoop{1, 3, size(0)}, LaunchLoop{1, 1, size(0)}, LaunchLoop{-1, 1, size(0)}}) {
    Artifact artifact = example();
    artifact.variants[0].loops = {loop};
    expect_error([&] { deserialize_artifact(serialize(artifact)); }, ErrorKind::InvalidArgument,
                 "the saved artifact is damaged: a loop is not over launches");
  }
}

TEST(Artifact, SaysInWhichOrderLaunchesCome) {
  Variant variant;
  variant.launches.resize(4);
  variant.loops = {{1, 3, size(0)}};
  const auto order_at = [&](int64_t count) {
    std::string order;
    const std::vector<int64_t> scalars = {count};
    for_each_launch(variant, scalars, [&](size_t i, int64_t iteration) {
      order += std::to_string(i) + "@" + std::to_string(iteration) + " ";
    });
    return order;
  };
  EXPECT_EQ(order_at(2), "0@0 1@0 2@0 1@1 2@1 3@0 ");
  EXPECT_EQ(order_at(0), "0@0 3@0 ");
}

TEST(Artifact, IsRefusedWhenCutShort) {
  const std::string bytes = serialize(example());
  expect_error([&] { deserialize_artifact(""); }, ErrorKind::InvalidArgument,
               "the saved artifact is damaged: it ends early");
  for (size_t length = kContentsAt; length < bytes.size(); ++length) {
    expect_error([&] { deserialize_artifact(bytes.substr(0, length)); }, ErrorKind::InvalidArgument,
                 "the saved artifact is damaged: its length is not what it says");
  }
}

TEST(Artifact, IsRefusedWithAnyBitFlipped) {
  const std::string bytes = serialize(example());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(deserialize_artifact(damaged), Error) << "bit " << bit;
  }
}

TEST(Artifact, OfAnotherVersionIsToldApart) {
  std::string bytes = serialize(example());
  bytes[8] = 99;
  const Error error =
      expect_error([&] { deserialize_artifact(bytes); }, ErrorKind::InvalidArgument,
                   "the saved artifact has format version 99, but this build reads version 6");
  EXPECT_EQ(error.reason(), "ARTIFACT_VERSION");
}

/// Random changes under a right checksum: reading either fails with an Error or gives an artifact
/// that can be used.
TEST(Artifact, SurvivesChangesUnderAValidChecksum) {
  const std::string saved = serialize(example());
  std::mt19937_64 random(7);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = saved;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const size_t at = kContentsAt + random() % (bytes.size() - kContentsAt);
      bytes[at] = static_cast<char>(random() % 5 == 0 ? random() : random() % 16);
    }
    bytes = with_valid_checksum(bytes);
    try {
      const Artifact artifact = deserialize_artifact(bytes);
      ++read;
      EXPECT_EQ(deserialize_artifact(serialize(artifact)), artifact);
      std::vector<int64_t> scalars(static_cast<size_t>(artifact.size_count) < 100 ? 64 : 0, 3);
      for (const Variant& variant : artifact.variants) {
        if (!scalars.empty()) variant.condition.evaluate(scalars);
      }
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    }
  }
  EXPECT_GT(read, 100);  // changes in the code, report and constants stay readable
}

TEST(Artifact, WithAnExpressionPastItsScalarsIsRefused) {
  Artifact artifact = example();
  artifact.parameters[0].shape[0] = size(2);  // a stride, not a size
  expect_error([&] { deserialize_artifact(serialize(artifact)); }, ErrorKind::InvalidArgument,
               "the saved artifact is damaged: a size expression is malformed");
}

TEST(Artifact, WithARequirementOfNoDimensionIsRefused) {
  Artifact artifact = example();
  artifact.requirements[0].dimension = 2;
  expect_error([&] { deserialize_artifact(serialize(artifact)); }, ErrorKind::InvalidArgument,
               "the saved artifact is damaged: a requirement names no dimension");
}

}  // namespace
}  // namespace kiln

#include "server/cache/disk_cache.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/daemon.h"

namespace kiln::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "00112233445566778899aabbccddeeff";

class DiskCacheTest : public ::testing::Test {
 protected:
  fs::path entry() const {
    return folder_.path() / "artifacts" / "00" / (std::string(kKey) + ".kart");
  }
  std::string contents() const {
    std::ifstream file(entry(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& contents) const {
    std::ofstream(entry(), std::ios::binary) << contents;
  }

  /// Damages the entry and expects that nobody is served from it again.
  void expect_rejected(const std::function<std::string(std::string)>& damage) {
    DiskCache cache(folder_.path(), 1 << 20);
    cache.put(kKey, "form", "artifact");
    write(damage(contents()));
    EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
    EXPECT_EQ(cache.corrupt(), 1);
    EXPECT_FALSE(fs::exists(entry()));
    cache.put(kKey, "form", "artifact");
    EXPECT_EQ(cache.find(kKey, "form"), "artifact");
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DiskCacheTest, FindsWhatAnEarlierDaemonPut) {
  DiskCache(folder_.path(), 1 << 20).put(kKey, "form", "artifact");
  DiskCache later(folder_.path(), 1 << 20);
  EXPECT_EQ(later.find(kKey, "form"), "artifact");
  EXPECT_EQ(later.corrupt(), 0);
}

TEST_F(DiskCacheTest, DoesNotServeAnotherFormOfTheSameKey) {
  DiskCache cache(folder_.path(), 1 << 20);
  cache.put(kKey, "form", "artifact");
  EXPECT_EQ(cache.find(kKey, "from"), std::nullopt);
  EXPECT_EQ(cache.corrupt(), 0);
}

TEST_F(DiskCacheTest, RejectsATruncatedEntry) {
  expect_rejected([](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); });
}

TEST_F(DiskCacheTest, RejectsAnEmptyEntry) {
  expect_rejected([](const std::string&) { return std::string(); });
}

TEST_F(DiskCacheTest, RejectsALongerEntry) {
  expect_rejected([](const std::string& bytes) { return bytes + "x"; });
}

TEST_F(DiskCacheTest, RejectsAnEntryWithAnyBitFlipped) {
  DiskCache(folder_.path(), 1 << 20).put(kKey, "form", "artifact");
  const size_t bytes = contents().size();
  for (size_t at = 0; at < bytes; ++at) {
    if (at >= 12 && at < 16) continue;  // reserved
    SCOPED_TRACE(at);
    expect_rejected([at](std::string damaged) {
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      return damaged;
    });
  }
}

TEST_F(DiskCacheTest, DropsTheEntriesNotUsedForLongest) {
  DiskCache cache(folder_.path(), 1000);
  const std::string artifact(150, 'a');
  for (char i = '0'; i < '5'; ++i)
    cache.put(std::string(32, i), "form", artifact);
  EXPECT_TRUE(cache.find(std::string(32, '1'), "form").has_value());
  cache.put(std::string(32, '5'), "form", artifact);
  EXPECT_LE(cache.bytes(), 1000);
  EXPECT_FALSE(cache.find(std::string(32, '0'), "form").has_value());
  EXPECT_TRUE(cache.find(std::string(32, '1'), "form").has_value());
  EXPECT_TRUE(cache.find(std::string(32, '5'), "form").has_value());
}

/// Root may write anywhere, so that it becomes nobody meanwhile.
class AsNobody {
 public:
  explicit AsNobody(const fs::path& folder) {
    if (!was_root_) return;
    EXPECT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::setresuid(kNobody, kNobody, 0), 0);
  }
  ~AsNobody() {
    const bool is_root = ::setresuid(0, 0, 0) == 0;
    EXPECT_EQ(is_root, was_root_);
  }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_ = ::getuid() == 0;
};

TEST_F(DiskCacheTest, ServesReadsFromAFolderThatCannotBeWritten) {
  const AsNobody nobody(folder_.path());
  {
    DiskCache cache(folder_.path(), 1 << 20);
    cache.put(kKey, "form", "artifact");
  }
  fs::permissions(folder_.path() / "artifacts" / "00", fs::perms(0555));
  fs::permissions(folder_.path() / "artifacts", fs::perms(0555));
  DiskCache cache(folder_.path(), 1 << 20);
  EXPECT_EQ(
      cache.problem(),
      "compiled kernels are not kept: " + folder_.path().string() +
          ": Permission denied; make room, let kilnd write there, or name another folder with "
          "--cache-dir");
  EXPECT_EQ(cache.find(kKey, "form"), "artifact");
  cache.put(std::string(32, 'f'), "form", "artifact");
  EXPECT_EQ(cache.find(std::string(32, 'f'), "form"), std::nullopt);
  fs::permissions(folder_.path() / "artifacts", fs::perms(0755));
  fs::permissions(folder_.path() / "artifacts" / "00", fs::perms(0755));
}

/// Looks for the same entries as other processes do, and puts what is not there. How often it got
/// something else than was put.
int64_t race(const fs::path& folder, unsigned number) {
  constexpr int kRounds = 300;
  constexpr unsigned kKeys = 100;
  // Less than all of them take, so that entries go while others look for them.
  DiskCache cache(folder, 40'000);
  std::minstd_rand random(number + 1);
  int64_t wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string id = std::to_string(100 + random() % kKeys);
    const std::string artifact(static_cast<size_t>(500 + std::stoi(id)), id.back());
    const std::optional<std::string> found = cache.find(id + std::string(29, 'a'), "form " + id);
    if (!found) {
      cache.put(id + std::string(29, 'a'), "form " + id, artifact);
    } else if (*found != artifact) {
      ++wrong;
    }
  }
  return wrong + cache.corrupt();
}

TEST_F(DiskCacheTest, ServesManyProcessesAtATime) {
  constexpr unsigned kProcesses = 64;
  std::vector<pid_t> processes;
  for (unsigned i = 0; i < kProcesses; ++i) {
    const pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) ::_exit(static_cast<int>(std::min<int64_t>(race(folder_.path(), i), 100)));
    processes.push_back(process);
  }
  for (const pid_t process : processes) {
    int status = 0;
    ASSERT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  DiskCache cache(folder_.path(), 1 << 20);
  EXPECT_GT(cache.bytes(), 0);
}

TEST_F(DiskCacheTest, GoesOnWithoutAFolder) {
  std::ofstream(folder_.path() / "file") << "no folder";
  DiskCache cache(folder_.path() / "file", 1 << 20);
  EXPECT_NE(cache.problem(), "");
  cache.put(kKey, "form", "artifact");
  EXPECT_EQ(cache.find(kKey, "form"), std::nullopt);
}

}  // namespace
}  // namespace kiln::server

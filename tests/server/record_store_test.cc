#include "server/tuning/record_store.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/daemon.h"

namespace kiln::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWayOut =
    "; make room, let kilnd write there, or name another folder with --cache-dir";

TuningKey key_for(const std::string& definition, const std::string& sizes = "9,10") {
  return {.definition = definition, .sizes = sizes, .device = "fake, 2 threads", .build = "b1"};
}

TuningRecord record_of(int64_t factor) {
  TuningRecord record{.candidate = "0:1",
                      .schedule = {},
                      .seconds = 1,
                      .default_seconds = 2,
                      .id = {},
                      .written = 0};
  record.schedule.add_steps()->add_factors(factor);
  return record;
}

class Records : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "tuning.sqlite"; }
  std::vector<fs::path> damaged() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().string().find(".damaged-") != std::string::npos) found.push_back(entry);
    }
    return found;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(Records, OutliveTheDaemon) {
  std::string id;
  {
    RecordStore store(folder_.path(), {});
    id = store.put(key_for("matmul"), record_of(4)).id;
    store.add_trial(key_for("matmul"), {"0:1", 0.5, ""});
    store.add_trial(key_for("matmul"), {"0:2", 0, "TOO_SLOW"});
  }
  RecordStore store(folder_.path(), {});
  EXPECT_EQ(store.problem(), "");
  EXPECT_EQ(store.count(), 1);
  const std::optional<TuningRecord> record = store.find(key_for("matmul"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->id, id);
  EXPECT_EQ(record->candidate, "0:1");
  EXPECT_EQ(record->schedule.steps(0).factors(0), 4);
  EXPECT_EQ(record->default_seconds, 2);
  const std::vector<TuningTrial> trials = store.trials(key_for("matmul"));
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].seconds, 0.5);
  EXPECT_EQ(trials[1].failure, "TOO_SLOW");
  EXPECT_TRUE(store.trials(key_for("softmax")).empty());
}

TEST_F(Records, AreForOneDefinitionDeviceBuildAndShapeClass) {
  RecordStore store(folder_.path(), {});
  store.put(key_for("matmul"), record_of(4));
  EXPECT_FALSE(store.find(key_for("softmax")));
  EXPECT_FALSE(store.find(key_for("matmul", "9,11")));
  TuningKey other = key_for("matmul");
  other.build = "b2";
  EXPECT_FALSE(store.find(other));
  EXPECT_FALSE(store.find_largest(other));
  other = key_for("matmul");
  other.device = "fake, 4 threads";
  EXPECT_FALSE(store.find_largest(other));
}

TEST_F(Records, OfTheLargestSizesServeWhenNoneAreKnown) {
  RecordStore store(folder_.path(), {});
  store.put(key_for("matmul", "9,10"), record_of(4));
  store.put(key_for("matmul", "11,10"), record_of(8));
  store.put(key_for("matmul", "8,12"), record_of(16));
  EXPECT_EQ(store.find_largest(key_for("matmul", ""))->schedule.steps(0).factors(0), 8);
  store.remove(key_for("matmul", "11,10"));
  EXPECT_EQ(store.find_largest(key_for("matmul", ""))->schedule.steps(0).factors(0), 16);
}

TEST_F(Records, AreBounded) {
  {
    RecordStore store(folder_.path(), {.records = 3, .trials = 4});
    for (int i = 0; i < 10; ++i) {
      store.put(key_for("kernel" + std::to_string(i)), record_of(i));
      store.add_trial(key_for("kernel"), {"0:" + std::to_string(i), 1, ""});
    }
    EXPECT_EQ(store.count(), 3);
    EXPECT_EQ(store.trials(key_for("kernel")).size(), 4U);
  }
  RecordStore store(folder_.path(), {.records = 100, .trials = 100});
  EXPECT_EQ(store.count(), 3);
  EXPECT_TRUE(store.find(key_for("kernel9")));
  EXPECT_TRUE(store.find(key_for("kernel7")));
}

TEST_F(Records, OfADamagedFileAreSetAsideAndANewOneIsBegun) {
  std::ofstream(file()) << std::string(8192, 'x');
  {
    RecordStore store(folder_.path(), {});
    EXPECT_EQ(store.problem(), "");
    store.put(key_for("matmul"), record_of(4));
  }
  ASSERT_EQ(damaged().size(), 1U);
  EXPECT_EQ(fs::file_size(damaged()[0]), 8192U);
  EXPECT_EQ(RecordStore(folder_.path(), {}).count(), 1);
}

TEST_F(Records, OfAFileDamagedInTheMiddleAreSetAside) {
  {
    RecordStore store(folder_.path(), {});
    for (int i = 0; i < 200; ++i)
      store.put(key_for("kernel" + std::to_string(i)), record_of(i));
  }
  const auto size = static_cast<std::streamoff>(fs::file_size(file()));
  std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
  for (std::streamoff at = 4096; at < size; at += 4096) {
    damage.seekp(at);
    damage << std::string(512, '\xff');
  }
  damage.close();
  RecordStore store(folder_.path(), {});
  EXPECT_EQ(store.problem(), "");
  EXPECT_EQ(store.count(), 0);
  EXPECT_EQ(damaged().size(), 1U);
}

TEST_F(Records, StayInMemoryWhereNoFileCanBe) {
  std::ofstream(folder_.path() / "file") << "not a folder";
  RecordStore store(folder_.path() / "file", {});
  EXPECT_EQ(store.problem(),
            "tuning records are not kept: " + (folder_.path() / "file" / "tuning.sqlite").string() +
                ": unable to open database file" + kWayOut);
  store.put(key_for("matmul"), record_of(4));
  EXPECT_TRUE(store.find(key_for("matmul")));
}

/// Files of this process may not grow past `bytes` while it lives: as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(Records, StayInMemoryWhenTheDiskIsFullAndAreKeptAgainLater) {
  RecordStore store(folder_.path(), {});
  store.put(key_for("first"), record_of(1));
  {
    const FullDisk full(fs::file_size(file().string() + "-wal"));
    store.put(key_for("second"), record_of(2));
    EXPECT_EQ(store.problem(),
              "tuning records are not kept: " + file().string() + ": disk I/O error" + kWayOut);
    EXPECT_TRUE(store.find(key_for("second")));
  }
  store.put(key_for("third"), record_of(3));
  EXPECT_EQ(store.problem(), "");
  EXPECT_TRUE(RecordStore(folder_.path(), {}).find(key_for("third")));
}

}  // namespace
}  // namespace kiln::server

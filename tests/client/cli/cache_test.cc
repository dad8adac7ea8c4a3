// `kiln cache` on a folder as a daemon leaves it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/client/cli/command.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  Cache() { place_.environment["XDG_CACHE_HOME"] = (place_.folder() / "home").string(); }

  /// A kernel of so many bytes that was used so many days ago.
  fs::path add(const std::string& kernel, std::size_t bytes, int days) {
    const fs::path path = folder() / "artifacts" / kernel.substr(0, 2) / (kernel + ".kart");
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(bytes, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24) * days);
    return path;
  }
  fs::path folder() const { return place_.folder() / "home" / "kiln"; }
  std::string output_of(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "cache");
    const Finished finished = place_.kiln(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out;
  }

  Workplace place_;
};

TEST_F(Cache, ListsTheLastUsedFirst) {
  add("aa11", 10, 3);
  add("bb22", 2000, 1);
  std::ofstream(folder() / "artifacts" / "aa" / ".aa11.temporary") << "being written";
  const std::string listed = output_of({"list"});
  EXPECT_EQ(listed.substr(0, listed.find("  ")), "KERNEL") << listed;
  EXPECT_LT(listed.find("bb22"), listed.find("aa11")) << listed;
  EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 3) << listed;
  EXPECT_EQ(output_of({"size"}), "2 kernels in " + folder().string() + ", 2010 bytes\n");
  EXPECT_EQ(output_of({"size", "--json"}), "{\n  \"folder\": \"" + folder().string() +
                                               "\",\n  \"kernels\": 2,\n  \"bytes\": 2010\n}\n");
}

TEST_F(Cache, RemovesWhatIsOldOrTooMuch) {
  const fs::path newest = add("aa11", 100, 0);
  const fs::path middle = add("bb22", 100, 2);
  const fs::path oldest = add("cc33", 100, 9);
  EXPECT_EQ(output_of({"prune", "--unused-days", "7"}),
            "removed 1 kernel, 100 bytes; 2 kernels left, 200 bytes\n");
  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_EQ(output_of({"prune", "--keep-bytes", "0.1K"}),
            "removed 1 kernel, 100 bytes; 1 kernel left, 100 bytes\n");
  EXPECT_TRUE(fs::exists(newest) && !fs::exists(middle));
  EXPECT_EQ(output_of({"clear"}), "removed 1 kernel, 100 bytes; 0 kernels left, 0 bytes\n");
  EXPECT_FALSE(fs::exists(newest));
}

TEST_F(Cache, SaysWhatIsWrong) {
  const fs::path none = place_.folder() / "none";
  EXPECT_EQ(place_.kiln({"cache", "list", "--cache-dir", none.string()}).err,
            "error: there is no folder " + none.string() +
                "; a daemon keeps its kernels under its --cache-dir, or else in " +
                folder().string() + "\n");
  add("aa11", 1, 0);
  EXPECT_EQ(place_.kiln({"cache", "prune"}).err,
            "error: cache prune takes --keep-bytes, --unused-days or both\n");
  EXPECT_EQ(place_.kiln({"cache", "prune", "--keep-bytes", "2 pounds"}).err,
            "error: --keep-bytes takes a number of bytes, as in 1000000, 500M or 2G, but got 2 "
            "pounds\n");
  EXPECT_TRUE(fs::exists(folder() / "artifacts" / "aa" / "aa11.kart"));
}

}  // namespace
}  // namespace kiln::test

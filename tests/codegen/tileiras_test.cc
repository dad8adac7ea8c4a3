#include "compiler/codegen/tileiras.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using namespace std::chrono_literals;

/// A variable of the environment for the time of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    if (!before_) ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A program in the place of tileiras, in a toolkit of its own.
class FakeTileiras : public ::testing::Test {
 protected:
  FakeTileiras() {
    std::string name = (fs::temp_directory_path() / "kiln-fake-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "tmp");
  }
  ~FakeTileiras() override { fs::remove_all(folder_); }

  void write(const std::string& script) {
    std::ofstream(program()) << "#!/bin/sh\n" << script;
    fs::permissions(program(), fs::perms::owner_all);
  }
  std::string program() const { return (folder_ / "bin" / "tileiras").string(); }
  std::string assemble(const RunLimits& limits = Tileiras::kLimits) const {
    return assemble(std::array<std::string, 1>{"some bytecode"}, limits).at(0);
  }
  std::vector<std::string> assemble(std::span<const std::string> modules,
                                    const RunLimits& limits = Tileiras::kLimits) const {
    const Variable which("KILN_TILEIRAS", program());
    const Variable home("CUDA_HOME", "/of/another/toolkit");
    const Variable temporary("TMPDIR", (folder_ / "tmp").string());
    return Tileiras(limits).assemble(modules, "sm_90");
  }
  void expect_refusal(const std::string& script, const std::string& message,
                      std::string_view reason = "TILEIRAS") {
    write(script);
    const Error error =
        expect_error([&] { assemble(); }, ErrorKind::Unavailable, program() + message);
    EXPECT_EQ(error.reason(), reason);
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
  }

  fs::path folder_;
};

TEST_F(FakeTileiras, IsGivenBytecodeArchitectureAndItsOwnToolkit) {
  write(R"(printf '\177ELF %s %s %s ' "$1" "$2" "$CUDA_HOME" > "$3"; cat "$4" >> "$3")");
  EXPECT_EQ(assemble(),
            "\x7f"
            "ELF --gpu-name=sm_90 -o " +
                folder_.string() + " some bytecode");
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

TEST_F(FakeTileiras, ThatFailsIsQuoted) {
  expect_refusal("echo error: failed to compile Tile IR program; echo more; exit 3",
                 " failed with exit code 3: error: failed to compile Tile IR program");
  expect_refusal("exit 1", " failed with exit code 1: it says nothing");
}

TEST_F(FakeTileiras, ThatCrashesIsNamed) {
  expect_refusal("kill -SEGV $$", " was ended by signal 11");
  expect_refusal("kill -KILL $$", " was killed from outside", "TILEIRAS_NOW");
}

TEST_F(FakeTileiras, ThatMakesNothingIsNamed) {
  expect_refusal("exit 0", " made no machine code");
  expect_refusal("echo text > \"$3\"", " made no machine code");
}

TEST_F(FakeTileiras, ThatCannotBeStartedIsNamed) {
  write("exit 0");
  fs::permissions(program(), fs::perms::owner_read);
  const Error error = expect_error([&] { assemble(); }, ErrorKind::Unavailable,
                                   program() + " could not be started: Permission denied");
  EXPECT_EQ(error.reason(), "TILEIRAS_NOW");
}

TEST_F(FakeTileiras, ThatDoesNotEndIsEndedWithWhatItStarted) {
  const std::string started = (folder_ / "started").string();
  write("sleep 100 & echo $! > " + started + "; exec >/dev/null 2>&1; wait");
  constexpr RunLimits kShort = {.processor = 60s, .clock = 300ms};
  const Error error = expect_error([&] { assemble(kShort); }, ErrorKind::Unavailable,
                                   program() + " did not end within 300 ms");
  EXPECT_EQ(error.reason(), "TILEIRAS_NOW");
  std::string child;
  std::ifstream(started) >> child;
  // It was killed, which on a busy host takes a moment to happen.
  const auto state_of_child = [&] {
    std::ifstream stat("/proc/" + child + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    return state;
  };
  std::string state = state_of_child();
  for (int waits = 0; waits < 500 && !state.empty() && state != "Z"; ++waits) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    state = state_of_child();
  }
  EXPECT_TRUE(state.empty() || state == "Z") << state;
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

/// On a host that has much to do what it takes by the clock says little.
TEST_F(FakeTileiras, ThatTakesTooMuchOfAProcessorIsEnded) {
  for (const char* endless : {"while :; do :; done", "exec >/dev/null 2>&1; while :; do :; done"}) {
    write(endless);
    constexpr RunLimits kLittle = {.processor = 100ms, .clock = 60s};
    const Error error = expect_error([&] { assemble(kLittle); }, ErrorKind::Unavailable,
                                     program() + " took more than 100 ms of a processor");
    EXPECT_EQ(error.reason(), "TILEIRAS_NOW");
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
  }
}

/// Each waits until the other has begun.
TEST_F(FakeTileiras, MakesModulesAtTheSameTime) {
  write(R"(word=$(cat "$4"); touch ")" + (folder_ / "begun-").string() + R"($word"
while [ ! -e ")" +
        (folder_ / "begun-one").string() + R"(" ] || [ ! -e ")" + (folder_ / "begun-two").string() +
        R"(" ]; do sleep 0.01; done
printf '\177ELF %s' "$word" > "$3")");
  EXPECT_EQ(assemble(std::array<std::string, 2>{"one", "two"}),
            (std::vector<std::string>{"\x7f"
                                      "ELF one",
                                      "\x7f"
                                      "ELF two"}));
  write(R"sh([ "$(cat "$4")" = one ] || exit 3; printf '\177ELF' > "$3")sh");
  expect_error(
      [&] {
        assemble(std::array<std::string, 2>{"one", "two"});
      },
      ErrorKind::Unavailable, program() + " failed with exit code 3: it says nothing");
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

TEST_F(FakeTileiras, ThatIsNotThereIsNamed) {
  expect_error([&] { assemble(); }, ErrorKind::Unavailable,
               "there is no program " + program() + ", which KILN_TILEIRAS names");
}

TEST_F(FakeTileiras, IsFoundInAToolkitOrNowhere) {
  ::unsetenv("KILN_TILEIRAS");
  const Variable packages("VIRTUAL_ENV", "/nowhere");
  const Variable path("PATH", "/nowhere");
  const Variable user("HOME", "/nowhere");
  write("");
  {
    const Variable home("CUDA_HOME", folder_.string());
    EXPECT_EQ(find_tileiras(), program());
  }
  if (fs::exists("/usr/local/cuda/bin/tileiras")) GTEST_SKIP() << "there is one in /usr/local/cuda";
  const Variable home("CUDA_HOME", "/nowhere");
  expect_error([] { find_tileiras(); }, ErrorKind::Unavailable,
               "tileiras, NVIDIA's compiler of Tile IR, was found neither in /usr/local/cuda nor "
               "among Python's packages; run pip install nvidia-cuda-tileiras, or let "
               "KILN_TILEIRAS name the program");
}

}  // namespace
}  // namespace kiln::codegen

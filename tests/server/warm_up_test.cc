// What is compiled before somebody waits: which files a list names, and when it is done.
#include "server/engine/warm_up.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/server/service_test.h"
#include "tests/support/daemon.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

using testing::expect_error;

constexpr const char* kTwoKernels =
    "kernel twice(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] * 2 }\n"
    "kernel thrice(X: float32[n]) -> (Y: float32[n]) { Y[i] = X[i] * 3\n"
    "  schedule cpu { unroll(Y.i) } }\n";

std::vector<std::string> names_of(const std::vector<v1::CompileRequest>& requests) {
  std::vector<std::string> names;
  for (const v1::CompileRequest& request : requests)
    names.push_back(request.source_map().kernel());
  return names;
}

TEST(WarmUpList, NamesFilesFromItsFolderOn) {
  const testing::TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  };
  std::filesystem::create_directory(folder.path() / "more");
  write("two.kiln", kTwoKernels);
  v1::SavedModule module;
  module.set_format("kiln module 1");
  module.add_kernels()->set_request(add_one("inc").SerializeAsString());
  write("more/saved", module.SerializeAsString());
  write("wrong.kiln", "kernel f(");
  write("other", "no module");
  write("list",
        "# what we serve\n"
        "two.kiln  # both\n"
        "\tmore/saved\r\n"
        "\n"
        "wrong.kiln\nother\nnowhere.kiln\nmore\n");
  const auto requests = read_warm_up_list((folder.path() / "list").string());
  EXPECT_EQ(names_of(requests), (std::vector<std::string>{"twice", "thrice", "inc"}));
  EXPECT_EQ(requests[0].target().name(), "llvm");
  EXPECT_EQ(requests[0].schedule().steps_size(), 0);
  EXPECT_EQ(requests[1].schedule().steps_size(), 1);
}

TEST(WarmUpList, IsThere) {
  expect_error([] { read_warm_up_list("/nowhere/list"); }, ErrorKind::InvalidArgument,
               "cannot read the warm-up list in /nowhere/list");
}

std::vector<v1::CompileRequest> requests_of(int count) {
  std::vector<v1::CompileRequest> requests;
  for (int i = 0; i < count; ++i)
    requests.push_back(add_one(fmt::format("k{}", i)));
  return requests;
}

TEST(WarmUpTest, CompilesAFewAtATimeAndSaysWhatIsLeft) {
  std::vector<CompileDone> under_way;
  size_t most = 0;
  WarmUp warm_up(
      [&](const v1::CompileRequest&, const std::shared_ptr<Call>& call, CompileDone done) {
        EXPECT_EQ(call->caller().priority, Priority::Low);
        under_way.push_back(std::move(done));
        most = std::max(most, under_way.size());
      },
      2);
  EXPECT_EQ(warm_up.problem(), "");
  warm_up.begin(requests_of(3));
  EXPECT_EQ(warm_up.problem(), "0 of the 3 kernels of the warm-up list are compiled");
  const auto end_one = [&](Outcome<CompileResult> outcome) {
    const CompileDone done = under_way.front();
    under_way.erase(under_way.begin());
    done(std::move(outcome));
  };
  end_one(CompileResult{});
  EXPECT_EQ(warm_up.problem(), "1 of the 3 kernels of the warm-up list are compiled");
  end_one(Error(ErrorKind::InvalidArgument, "LIMIT", "too large"));
  EXPECT_EQ(warm_up.problem(), "2 of the 3 kernels of the warm-up list are compiled");
  end_one(CompileResult{});
  EXPECT_EQ(warm_up.problem(), "");
  EXPECT_EQ(most, 2U);
}

TEST(WarmUpTest, TakesAnyNumberThatIsThereAlready) {
  WarmUp warm_up([](const auto&, const auto&, const CompileDone& done) { done(CompileResult{}); },
                 4);
  warm_up.begin(std::vector<v1::CompileRequest>(100'000));
  EXPECT_EQ(warm_up.problem(), "");
}

TEST(WarmUpTest, EndsWithTheDaemon) {
  int asked = 0;
  WarmUp warm_up(
      [&](const auto&, const auto&, const CompileDone& done) {
        ++asked;
        done(Error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending"));
      },
      1);
  warm_up.begin(requests_of(10));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(warm_up.problem(), "");
}

class WarmedUp : public ServiceTest {};

TEST_F(WarmedUp, AServiceIsReadyOnceItIs) {
  EXPECT_TRUE(eventually([&] { return service_->engine().why_not_ready().empty(); }));
  service_->engine().warm_up({add_one("compile_waits"), add_one("compile_fails")});
  EXPECT_EQ(service_->engine().why_not_ready(),
            "0 of the 2 kernels of the warm-up list are compiled");
  let_go();
  EXPECT_TRUE(eventually([&] { return service_->engine().why_not_ready().empty(); }));
  v1::CompileResponse response;
  ASSERT_TRUE(service_->compile(add_one("compile_waits"), response).ok());
  EXPECT_EQ(response.cache(), v1::CACHE_LEVEL_MEMORY);
}

}  // namespace
}  // namespace kiln::server

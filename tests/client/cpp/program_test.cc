#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/floats.h"
#include "tests/client/cpp/on_a_daemon.h"

namespace kiln::test {
namespace {

const char* const kText = R"(
kernel halve(w: float32[n]) -> (h: float32[n], most: float32[]) {
  h[i] = w[i] * 0.5
  most[] = max[i < n](h[i])
}
kernel is_small(most: float32[]) -> (done: bool[]) { done[] = most[] < 1.0 }
program halving {
  parameter w
  h, most = halve(w)
  done = is_small(most)
  update w = h
  report most
  output h
  until done
}

kernel add(w: float32[n], x: float32[b, n], scale: float32[]) -> (v: float32[n], root: float32[]) {
  v[i] = w[i] + sum[k < b](x[k, i]) * scale[]
  root[] = sqrt(v[0])
}
program adding {
  data x; input scale; parameter w
  v, root = add(w, x, scale)
  update w = v
  report root
}
)";

/// Programs of a kernel file on a real daemon, which all tests of this file share.
class Programs : public OnADaemon {
 protected:
  const Connection connection_ = connect(daemon_->address());
  const std::vector<Program> programs_ = parse_programs(kText);
  const Program& halving_ = programs_[0];
  const Program& adding_ = programs_[1];
};

TEST_F(Programs, SayWhatTheyTakeAndGive) {
  EXPECT_EQ(halving_.name(), "halving");
  EXPECT_EQ(halving_.outputs(), std::vector<std::string>{"h"});
  EXPECT_EQ(halving_.reports(), std::vector<std::string>{"most"});
  EXPECT_TRUE(halving_.has_end());
  const std::vector<ProgramValue> values = adding_.values();
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].role, ProgramRole::Data);
  EXPECT_EQ(values[1].role, ProgramRole::Input);
  EXPECT_EQ(values[2].role, ProgramRole::Parameter);
  EXPECT_EQ(values[2].type, float32);
}

TEST_F(Programs, RunUntilTheirEndAndWriteParametersBack) {
  const Array w = array_of({8, 4});
  const ProgramResult result = connection_.run(halving_, {{"w", w}});
  EXPECT_EQ(result.steps, 4U);
  EXPECT_EQ(result.reports.at("most"), (std::vector<double>{4, 2, 1, 0.5}));
  EXPECT_EQ(values_of(result.outputs.at("h")), (std::vector<float>{0.5, 0.25}));
  EXPECT_EQ(values_of(w), (std::vector<float>{0.5, 0.25}));
}

TEST_F(Programs, ChangeArraysOfTheServiceInTheirPlace) {
  const RemoteArray w = connection_.upload(array_of({8, 4}));
  connection_.run(halving_, {{"w", w}});
  EXPECT_EQ(values_of(w.download()), (std::vector<float>{0.5, 0.25}));
}

TEST_F(Programs, PassOverDataSetsInBatches) {
  const Array w = array_of({0, 0});
  std::vector<std::uint64_t> epochs;
  const ProgramResult result = connection_.run(
      adding_,
      {{"w", w},
       {"x", Array(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2})},
       {"scale", Array(std::vector<float>{0.5}, {})}},
      {.epochs = 3, .batch = 2, .on_progress = [&](const ProgramProgress& progress) {
         epochs.push_back(progress.epochs);
         EXPECT_TRUE(progress.means.contains("root"));
       }});
  EXPECT_EQ(result.steps, 6U);
  EXPECT_EQ(values_of(w), (std::vector<float>{24, 30}));
  EXPECT_EQ(epochs, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(Programs, LeaveParametersOfTheLastWholeStepAfterAnError) {
  const Array w = array_of({2, 0});
  const std::map<std::string, Argument> given = {
      {"w", w},
      {"x", Array(std::vector<float>{-1, 1, -2, 1}, {2, 2})},
      {"scale", Array(std::vector<float>{1}, {})}};
  expect_client_error([&] { connection_.run(adding_, given, {.batch = 1, .stop_on_nan = true}); },
                      ErrorKind::InvalidArgument, "PROGRAM_NAN",
                      "root is NaN in step 1 of adding; the parameters are those before it");
  EXPECT_EQ(values_of(w), (std::vector<float>{1, 1}));
}

TEST_F(Programs, SayWhatIsWrongWithWhatTheyAreGiven) {
  const Array w = array_of({8, 4});
  expect_client_error(
      [&] {
        connection_.run(halving_, {{"w", w}, {"x", w}});
      },
      ErrorKind::InvalidArgument, "PROGRAM_FEED", "x is no input of halving; its inputs are w");
  expect_client_error([&] { connection_.run(halving_, {}); }, ErrorKind::InvalidArgument,
                      "PROGRAM_GIVEN", "halving needs parameter w, which h reads, but got none");
}

}  // namespace
}  // namespace kiln::test

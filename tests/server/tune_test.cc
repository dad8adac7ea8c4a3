#include <algorithm>
#include <thread>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

/// Searches for the fake kernels called tuned..., whose candidates are the ways of fake_worker.cc.
class Tune : public ServiceTest {
 protected:
  struct Search {
    grpc::Status status;
    std::vector<v1::TuneEvent> events;

    std::vector<v1::TuneTrial> trials() const {
      std::vector<v1::TuneTrial> found;
      for (const v1::TuneEvent& event : events) {
        if (event.has_trial()) found.push_back(event.trial());
      }
      return found;
    }
    const v1::TuneResult& result() const { return events.back().result(); }
    /// The trial of a candidate.
    v1::TuneTrial of(const std::string& way) const {
      for (const v1::TuneTrial& trial : trials()) {
        if (trial.candidate() == "Y: fake(way=" + way + ")") return trial;
      }
      ADD_FAILURE() << "no trial of way " << way;
      return {};
    }
  };

  static v1::TuneRequest request_for(const std::string& kernel, uint32_t trials = 0,
                                     int64_t size = 8) {
    v1::TuneRequest request;
    *request.mutable_kernel() = add_one(kernel);
    (*request.mutable_sizes())["n"] = size;
    request.set_trials(trials);
    return request;
  }

  /// `started` is told of the first event.
  Search tune(const v1::TuneRequest& request, grpc::ClientContext* given = nullptr,
              const std::function<void()>& started = {}) {
    grpc::ClientContext own;
    grpc::ClientContext& context = given != nullptr ? *given : own;
    Search search;
    const auto reader = service_->kernels->Tune(&context, request);
    v1::TuneEvent event;
    while (reader->Read(&event)) {
      search.events.push_back(event);
      if (started && search.events.size() == 1) started();
    }
    search.status = reader->Finish();
    return search;
  }

  std::string report_of(const std::string& kernel) {
    grpc::ClientContext context;
    v1::InspectRequest request;
    request.set_kernel_id(kernel);
    v1::InspectResponse response;
    EXPECT_TRUE(service_->kernels->Inspect(&context, request, &response).ok());
    return response.report_json();
  }
};

TEST_F(Tune, MeasuresEveryCandidateAndPassesOverThoseThatMisbehave) {
  const Search search = tune(request_for("tuned"));
  ASSERT_TRUE(search.status.ok()) << search.status.error_message();
  EXPECT_EQ(search.events.front().start().candidates(), 6);
  EXPECT_EQ(search.of("0").failure(), "");
  EXPECT_EQ(search.of("0").seconds(), 2e-3);
  EXPECT_EQ(search.of("1").failure(), "");
  EXPECT_EQ(search.of("1").seconds(), 1e-3);
  EXPECT_EQ(search.of("2").failure(),
            "the worker of cpu:0 ended while it ran tuned; it is started again");
  EXPECT_EQ(search.of("3").failure(), "it took more than 20 times the default");
  EXPECT_EQ(search.of("4").failure(), "its Y differs from that of the default");
  EXPECT_EQ(search.of("5").failure(), "this way does not compile");
  EXPECT_EQ(search.result().end(), "candidates");
  EXPECT_EQ(search.result().trials(), 6U);
  EXPECT_EQ(search.result().failures(), 4U);
  EXPECT_EQ(search.result().default_seconds(), 2e-3);
  EXPECT_EQ(search.result().best_seconds(), 1e-3);
  EXPECT_EQ(search.result().candidate(), "Y: fake(way=1)");
  ASSERT_EQ(search.result().schedule_size(), 1);
  EXPECT_EQ(search.result().schedule(0), "split(Y.i, factor=3)");
  EXPECT_EQ(search.result().problem(), "");
  EXPECT_EQ(service_->counter("tuning_trials"), 6);
  EXPECT_EQ(service_->counter("tuning_failures"), 4);
  EXPECT_EQ(service_->counter("tuning_records"), 1);
}

TEST_F(Tune, GivesEveryLaterCompileTheRecord) {
  EXPECT_EQ(report_of(service_->kernel(add_one("tuned"))).find("tuning record"), std::string::npos);
  const std::string record = tune(request_for("tuned")).result().record();
  const std::string note = "schedule from tuning record " + record +
                           ": 2.00 times as fast as without when it was measured on fake, a fake";
  EXPECT_NE(report_of(service_->kernel(add_one("tuned"))).find(note), std::string::npos);
  // Names are no part of a definition.
  EXPECT_NE(report_of(service_->kernel(add_one("other"))).find(note), std::string::npos);
  v1::CompileRequest plain = add_one("tuned");
  plain.mutable_options()->set_auto_(v1::AUTO_MODE_NEVER);
  EXPECT_EQ(report_of(service_->kernel(plain)).find(note), std::string::npos);
  EXPECT_EQ(report_of(service_->kernel(add_one_of("tuned", 7))).find(note), std::string::npos);
  EXPECT_EQ(service_->counter("tuned_compiles"), 2);
  restart();
  EXPECT_NE(report_of(service_->kernel(add_one("tuned"))).find(note), std::string::npos);
}

TEST_F(Tune, RunsUnderTheRecordAsWithout) {
  tune(request_for("tuned"));
  std::vector<float> output;
  EXPECT_TRUE(service_->run(service_->kernel(add_one("tuned")), {1, 2, 3}, &output).ok());
  EXPECT_EQ(output, (std::vector<float>{2, 3, 4}));
}

TEST_F(Tune, CompilesWithoutARecordThatDoesNotCompileAnyMore) {
  TuningRecord broken{.candidate = "0:5", .schedule = {}, .seconds = 1, .default_seconds = 2};
  tune(request_for("tuned", 1));  // for the key, of which the test knows nothing
  v1::CompileRequest request = add_one("tuned");
  const CompileSetting setting{.build_id = "fake build",
                               .arch = [](TargetKind) { return std::string("fake"); }};
  v1::Step& split = *broken.schedule.add_steps();
  split.set_name("split");
  split.set_stage(1);
  split.add_axes(0);
  split.add_factors(7);
  const TuningKey key{tuning_of(check_request(request, setting)), "3", "fake, a fake",
                      "fake build"};
  service_->engine().records().put(key, broken);
  v1::CompileResponse response;
  EXPECT_TRUE(service_->compile(request, response).ok());
  EXPECT_EQ(report_of(response.kernel_id()).find("tuning record"), std::string::npos);
}

// A record of code that was read, for what is a device here.
TEST_F(Tune, MeasuresWhatWasFoundByReadingAndForgetsWhatIsSlower) {
  v1::CompileRequest request = add_one("tuned");
  const CompileSetting setting{.build_id = "fake build",
                               .arch = [](TargetKind) { return std::string("fake"); }};
  const TuningKey read{tuning_of(check_request(request, setting)), "3", TuningKey::code_for("fake"),
                       "fake build"};
  RecordStore& records = service_->engine().records();
  const TuningRecord by_code{
      .candidate = "0:2", .schedule = {}, .seconds = 1, .default_seconds = 2};
  records.put(read, by_code);
  const Search slower = tune(request_for("tuned", 1));
  ASSERT_TRUE(slower.status.ok()) << slower.status.error_message();
  EXPECT_EQ(slower.trials().front().candidate(), "Y: fake(way=2)");
  EXPECT_FALSE(records.find(read));
  TuningRecord unknown = by_code;
  unknown.candidate = "9:9";  // of another compiler
  records.put(read, unknown);
  ASSERT_TRUE(tune(request_for("tuned", 1)).status.ok());
  EXPECT_FALSE(records.find(read));

  TuningRecord fast = by_code;
  fast.candidate = "0:1";
  records.put(read, fast);
  const Search faster = tune(request_for("tuned", 1));
  EXPECT_EQ(faster.result().candidate(), "Y: fake(way=1)");
  EXPECT_NE(faster.result().record(), "");
  EXPECT_TRUE(records.find(read));
}

TEST_F(Tune, GoesOnWhereAnEarlierSearchEnded) {
  const Search first = tune(request_for("tuned", 3));
  EXPECT_EQ(first.result().end(), "trials");
  EXPECT_EQ(first.result().trials(), 3U);
  restart();
  const Search second = tune(request_for("tuned"));
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  const std::vector<v1::TuneTrial> trials = second.trials();
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(), [](auto& t) { return t.recorded(); }), 3);
  EXPECT_EQ(second.result().end(), "candidates");
  // The record, if there was one by then, is measured once more.
  EXPECT_LE(second.result().trials(), 4U);
  EXPECT_EQ(second.result().candidate(), "Y: fake(way=1)");
}

TEST_F(Tune, KeepsWhatItFoundWhenTheDaemonEndsInTheMiddle) {
  std::thread caller([&] {
    const Search search = tune(request_for("tuned_slowly"));
    EXPECT_FALSE(search.status.ok());
  });
  EXPECT_TRUE(eventually([&] { return service_->counter("tuning_trials") >= 3; }));
  service_->engine().tunes().drain();
  caller.join();
  const int64_t measured = service_->counter("tuning_trials");
  restart();
  const std::vector<v1::TuneTrial> trials = tune(request_for("tuned_slowly", 1)).trials();
  EXPECT_GE(std::count_if(trials.begin(), trials.end(), [](auto& t) { return t.recorded(); }),
            measured);
}

TEST_F(Tune, EndsSoonAfterItsCallerIsGone) {
  grpc::ClientContext context;
  std::thread caller([&] {
    EXPECT_EQ(tune(request_for("tuned_slowly"), &context).status.error_code(),
              grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(eventually([&] { return service_->counter("tuning_trials") >= 2; }));
  context.TryCancel();
  const Clock::time_point cancelled = Clock::now();
  caller.join();
  EXPECT_TRUE(eventually([&] { return service_->engine().tunes().searches() == 0; }));
  // A kernel that does not end when it is told to has its worker ended after 0.2 s here.
  EXPECT_LT(Clock::now() - cancelled, milliseconds(1500));
  EXPECT_LT(service_->counter("tuning_trials"), 90);  // of 96 candidates
}

TEST_F(Tune, LetsASecondCallerJoinTheSearch) {
  std::vector<Search> searches(2);
  std::thread first([&] { searches[0] = tune(request_for("tuned_waits", 12)); });
  EXPECT_TRUE(has_begun("tuned_waits"));
  std::thread second(
      [&] { searches[1] = tune(request_for("tuned_waits", 12), nullptr, [&] { let_go(); }); });
  first.join();
  second.join();
  EXPECT_EQ(service_->counter("searches"), 1);
  for (const Search& search : searches) {
    ASSERT_TRUE(search.status.ok()) << search.status.error_message();
    EXPECT_EQ(search.trials().size(), 12U);
    EXPECT_EQ(search.result().trials(), 12U);
  }
  EXPECT_FALSE(searches[0].events.front().start().joined());
  EXPECT_TRUE(searches[1].events.front().start().joined());
}

TEST_F(Tune, GoesOnForWhoJoinedWhenTheFirstCallerLeaves) {
  grpc::ClientContext context;
  std::thread first([&] { tune(request_for("tuned_waits", 12), &context); });
  EXPECT_TRUE(has_begun("tuned_waits"));
  Search joined;
  std::thread second([&] {
    joined = tune(request_for("tuned_waits", 12), nullptr, [&] { context.TryCancel(); });
  });
  first.join();
  let_go();
  second.join();
  ASSERT_TRUE(joined.status.ok()) << joined.status.error_message();
  EXPECT_EQ(joined.trials().size(), 12U);
}

TEST_F(Tune, LetsASearchForSomethingElseWait) {
  Search later;
  std::thread first([&] { tune(request_for("tuned_waits", 8)); });
  EXPECT_TRUE(has_begun("tuned_waits"));
  std::thread second([&] { later = tune(request_for("tuned", 1, 5), nullptr, [&] { let_go(); }); });
  first.join();
  second.join();
  ASSERT_TRUE(later.status.ok()) << later.status.error_message();
  ASSERT_GE(later.events.size(), 2U);
  EXPECT_EQ(later.events[0].start().waiting(), 1U);
  EXPECT_EQ(later.events[1].start().waiting(), 0U);
  EXPECT_EQ(later.events[1].start().candidates(), 6);
}

TEST_F(Tune, ServesOthersWhileItSearches) {
  grpc::ClientContext context;
  std::thread caller([&] { tune(request_for("tuned_slowly"), &context); });
  EXPECT_TRUE(eventually([&] { return service_->counter("tuning_trials") >= 1; }));
  const std::string kernel = service_->kernel(add_one("inc"));
  for (int i = 0; i < 5; ++i) {
    const Clock::time_point begun = Clock::now();
    EXPECT_TRUE(service_->run(kernel, {1, 2, 3}).ok());
    EXPECT_LT(Clock::now() - begun, milliseconds(2000));
  }
  EXPECT_EQ(service_->engine().tunes().searches(), 1);  // which nobody had to wait for
  context.TryCancel();
  caller.join();
}

TEST_F(Tune, MeasuresOnTheInputsItIsGiven) {
  v1::TuneRequest request = request_for("tuned", 1);
  request.clear_sizes();
  *request.add_arguments() = inline_argument({1, 2, 3});
  *request.add_arguments() = output_argument();
  EXPECT_TRUE(tune(request).status.ok());
}

TEST_F(Tune, ReadsTheCodeForAGpuThatIsNotHere) {
  v1::TuneRequest request = request_for("tuned");
  request.mutable_kernel()->mutable_target()->set_name("cuda");
  request.mutable_kernel()->mutable_target()->set_arch("sm_90");
  const Search search = tune(request);
  ASSERT_TRUE(search.status.ok()) << search.status.error_message();
  EXPECT_EQ(search.events.front().start().read_for(), "sm_90");
  EXPECT_EQ(search.of("0").seconds(), 2e-3);
  EXPECT_EQ(search.of("1").seconds(), 1e-3);
  // Those that misbehave when they run do not run.
  EXPECT_EQ(search.of("2").failure(), "");
  EXPECT_EQ(search.of("5").failure(), "this way does not compile");
  EXPECT_EQ(search.result().read_for(), "sm_90");
  EXPECT_EQ(search.result().failures(), 1U);
  EXPECT_EQ(search.result().default_seconds(), 2e-3);
  EXPECT_EQ(search.result().candidate(), "Y: fake(way=1)");
  EXPECT_NE(report_of(service_->kernel(request.kernel()))
                .find("schedule from tuning record " + search.result().record() +
                      ": 2.00 times as fast as without by the code for sm_90, which never ran"),
            std::string::npos);

  request.clear_sizes();
  expect_status(tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "SIZE",
                "tuned is tuned for certain sizes, but n is not given; give each size");
  v1::Argument& x = *request.add_arguments();
  x.mutable_inline_()->set_type(v1::DATA_TYPE_FLOAT32);
  expect_status(tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "TUNE_INPUTS",
                "there is no sm_90 here to run tuned on, so that its schedules are judged by their "
                "code; give its sizes instead of inputs");
}

TEST_F(Tune, RefusesWhatItCannotTuneInTheCallersWords) {
  v1::TuneRequest request = request_for("tuned");
  request.clear_sizes();
  expect_status(
      tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "SIZE",
      "tuned is tuned for certain sizes, but n is not given; give each size, or the inputs");
  expect_status(tune(request_for("inc")).status, grpc::StatusCode::FAILED_PRECONDITION,
                "NOTHING_TO_TUNE",
                "inc leaves nothing open: every stage has steps, or one way to run; tune measures "
                "schedules for stages without steps");
  request = request_for("tuned");
  request.mutable_kernel()->mutable_options()->set_auto_(v1::AUTO_MODE_NEVER);
  expect_status(tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "TUNE_TARGET",
                "tuned has no automatic schedule to tune: it is to be interpreted, or automatic "
                "schedules are turned off");
  request = request_for("tuned");
  request.mutable_kernel()->mutable_target()->set_arch("another");
  expect_status(tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "TUNE_ARCH",
                "tune measures on the device here, which is no another; leave the arch out");
  request = request_for("tuned");
  request.set_seconds(-1);
  expect_status(tune(request).status, grpc::StatusCode::INVALID_ARGUMENT, "TUNE_BUDGET",
                "a search takes a number of seconds, but got -1");
  request = request_for("tuned", 1, int64_t{1} << 40);
  expect_status(tune(request).status, grpc::StatusCode::RESOURCE_EXHAUSTED, "TENSOR_MEMORY",
                "the inputs of tuned take more than the 4294967296 bytes that the daemon has for "
                "tensors; tune for smaller sizes");
  EXPECT_TRUE(tune(request_for("tuned", 1)).status.ok());
}

TEST_F(Tune, TakesNoMoreThanTheDaemonAllows) {
  EngineOptions options = usual_options();
  options.tuning.trials = 2;
  options.tuning.time = std::chrono::seconds(5);
  restart(options);
  v1::TuneRequest request = request_for("tuned", 1000);
  request.set_seconds(1e9);
  const Search search = tune(request);
  EXPECT_EQ(search.events.front().start().trials(), 2U);
  EXPECT_EQ(search.events.front().start().seconds(), 5);
  EXPECT_EQ(search.result().trials(), 2U);
}

}  // namespace
}  // namespace kiln::server

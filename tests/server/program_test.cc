#include <filesystem>
#include <thread>

#include "kiln/v1/program.grpc.pb.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

/// What a run said.
struct Ran {
  grpc::Status status;
  std::vector<v1::ProgramProgress> progress;
  v1::ProgramResult result;
};

class ProgramTest : public ServiceTest {
 protected:
  ProgramTest() { connect(); }
  void connect() { programs_ = v1::ProgramService::NewStub(service_->channel()); }

  /// w becomes w + 1, by a node of this name.
  static v1::DefineProgramRequest counting(const std::string& node) {
    v1::DefineProgramRequest request;
    v1::Program& program = *request.mutable_program();
    program.set_name("counting");
    const v1::CompileRequest kernel = add_one(node);
    *program.add_definitions() = kernel.definition();
    *program.add_source_maps() = kernel.source_map();
    program.add_values()->set_name("w");
    program.mutable_values(0)->set_kind(v1::VALUE_KIND_PARAMETER);
    program.add_values()->set_name("w1");
    v1::ProgramNode& made = *program.add_nodes();
    made.set_name(node);
    made.add_inputs(0);
    made.add_outputs(1);
    program.add_updates()->set_value(1);
    return request;
  }

  std::string define(const v1::DefineProgramRequest& request) {
    grpc::ClientContext context;
    v1::DefineProgramResponse response;
    const grpc::Status status = programs_->Define(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.program_id();
  }
  grpc::Status status_of_define(const v1::DefineProgramRequest& request) {
    grpc::ClientContext context;
    v1::DefineProgramResponse response;
    return programs_->Define(&context, request, &response);
  }

  v1::RunProgramRequest run_of(const std::string& node, const std::string& tensor) {
    v1::RunProgramRequest request;
    request.set_program_id(define(counting(node)));
    *request.add_given()->mutable_argument() = tensor_argument(tensor);
    return request;
  }
  Ran run(const v1::RunProgramRequest& request, std::chrono::milliseconds limit = kLong) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    const auto stream = programs_->Run(&context, request);
    Ran ran;
    v1::ProgramEvent event;
    while (stream->Read(&event)) {
      if (event.has_progress()) ran.progress.push_back(event.progress());
      if (event.has_result()) ran.result = event.result();
    }
    ran.status = stream->Finish();
    return ran;
  }
  std::vector<float> contents(const std::string& tensor) {
    std::string bytes;
    EXPECT_TRUE(service_->download(tensor, bytes).ok());
    return floats_of(bytes);
  }

  /// The plan of counting for so many elements.
  v1::PlanProgramResponse plan_of(const std::string& node, int64_t size) {
    v1::PlanProgramRequest request;
    request.set_program_id(define(counting(node)));
    v1::GivenShape& shape = *request.add_shapes();
    shape.set_type(v1::DATA_TYPE_FLOAT32);
    shape.add_shape(size);
    grpc::ClientContext context;
    v1::PlanProgramResponse plan;
    const grpc::Status status = programs_->Plan(&context, request, &plan);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return plan;
  }
  /// The same without what each answer has of its own.
  static std::string decided(v1::PlanProgramResponse plan) {
    plan.clear_timings();
    for (v1::PlannedKernel& kernel : *plan.mutable_kernels())
      kernel.clear_cache();
    return plan.DebugString();
  }

  std::unique_ptr<v1::ProgramService::Stub> programs_;
};

TEST_F(ProgramTest, TakesStepsInOneCall) {
  const std::string w = service_->upload({1, 2, 3});
  for (const uint64_t steps : {1, 2, 5}) {
    v1::RunProgramRequest request = run_of("inc", w);
    request.set_steps(steps);
    const Ran ran = run(request);
    ASSERT_TRUE(ran.status.ok()) << ran.status.error_message();
    EXPECT_EQ(ran.result.steps(), steps);
  }
  EXPECT_EQ(contents(w), (std::vector<float>{9, 10, 11}));
}

/// y = (w + 1) + 1, of which the first sum follows from a parameter that stays.
TEST_F(ProgramTest, ComputesOnceWhatNoStepChanges) {
  v1::DefineProgramRequest program = counting("inc");
  program.mutable_program()->clear_updates();
  program.mutable_program()->add_values()->set_name("y");
  v1::ProgramNode& last = *program.mutable_program()->add_nodes();
  last.set_name("last");
  last.add_inputs(1);
  last.add_outputs(2);
  program.mutable_program()->add_outputs(2);
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request;
  request.set_program_id(define(program));
  *request.add_given()->mutable_argument() = tensor_argument(w);
  const auto expect_run = [&](const std::vector<float>& wanted, int64_t computed) {
    request.set_steps(3);
    const Ran ran = run(request);
    ASSERT_TRUE(ran.status.ok()) << ran.status.error_message();
    EXPECT_EQ(floats_of(ran.result.outputs(0).data()), wanted);
    EXPECT_EQ(service_->counter("constants"), computed);
  };
  expect_run({3, 4, 5}, 1);
  expect_run({3, 4, 5}, 1);
  v1::TensorHeader header = header_of(3);
  header.set_into(w);
  std::string same = w;
  ASSERT_TRUE(service_->upload(header, {bytes_of({5, 6, 7})}, same).ok());
  expect_run({7, 8, 9}, 2);
  expect_run({7, 8, 9}, 2);
  const std::string other = service_->upload({0, 0, 1});
  *request.mutable_given(0)->mutable_argument() = tensor_argument(other);
  expect_run({2, 2, 3}, 3);
  EXPECT_EQ(contents(w), (std::vector<float>{5, 6, 7}));
}

TEST_F(ProgramTest, FindsADefinedProgramAgain) {
  EXPECT_EQ(define(counting("inc")), define(counting("inc")));
}

TEST_F(ProgramTest, GivesBackWhatTheParameterBecame) {
  v1::DefineProgramRequest program = counting("inc");
  program.mutable_program()->add_outputs(1);
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request;
  request.set_program_id(define(program));
  *request.add_given()->mutable_argument() = tensor_argument(w);
  for (const bool keep : {false, true}) {
    request.set_keep(keep);
    const Ran ran = run(request);
    ASSERT_TRUE(ran.status.ok()) << ran.status.error_message();
    const v1::Result& output = ran.result.outputs(0);
    EXPECT_EQ(keep ? contents(output.tensor()) : floats_of(output.data()), contents(w));
  }
}

TEST_F(ProgramTest, PassesOverDataSets) {
  v1::DefineProgramRequest program = counting("inc");
  program.mutable_program()->mutable_values(0)->set_kind(v1::VALUE_KIND_BATCH);
  program.mutable_program()->clear_updates();
  program.mutable_program()->add_outputs(1);
  v1::RunProgramRequest request;
  request.set_program_id(define(program));
  request.set_batch(2);
  request.set_epochs(2);
  *request.add_given()->mutable_argument() = inline_argument({1, 2, 3, 4, 5, 6});
  const Ran ran = run(request);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error_message();
  EXPECT_EQ(ran.result.steps(), 6U);
  EXPECT_EQ(floats_of(ran.result.outputs(0).data()), (std::vector<float>{6, 7}));
  ASSERT_EQ(ran.progress.size(), 2U);
  EXPECT_EQ(ran.progress[1].epochs(), 2U);
}

TEST_F(ProgramTest, KeepsTheLastWholeStepWhenAKernelFails) {
  const std::string w = service_->upload({1, 2, 3});
  const Ran ran = run(run_of("fails", w));
  expect_status(ran.status, grpc::StatusCode::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE",
                "index 9 is out of range in w1");
  EXPECT_EQ(contents(w), (std::vector<float>{1, 2, 3}));
}

TEST_F(ProgramTest, EndsWithItsCaller) {
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request = run_of("polls", w);
  grpc::ClientContext context;
  const auto stream = programs_->Run(&context, request);
  ASSERT_TRUE(has_begun("polls"));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The device takes the next call, and the step that was under way changed nothing.
  EXPECT_TRUE(run(run_of("inc", w)).status.ok());
  EXPECT_EQ(contents(w), (std::vector<float>{2, 3, 4}));
}

TEST_F(ProgramTest, EndsAtItsDeadline) {
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request = run_of("inc", w);
  request.set_steps(UINT64_MAX);
  EXPECT_EQ(run(request, std::chrono::milliseconds(300)).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(run(run_of("inc", w)).status.ok());
}

TEST_F(ProgramTest, EndsByItselfAtAWholeStep) {
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request = run_of("inc", w);
  request.set_steps(UINT64_MAX);
  request.set_timeout(0.3);
  expect_status(run(request).status, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE",
                "counting did not end before its deadline");
  // Nobody writes it any more.
  const std::vector<float> values = contents(w);
  EXPECT_EQ(values, (std::vector<float>{values[0], values[0] + 1, values[0] + 2}));
  EXPECT_EQ(contents(w), values);
}

TEST_F(ProgramTest, IsNotRepeatedWhenItsWorkerDies) {
  const Ran ran = run(run_of("dies", service_->upload({1, 2, 3})));
  expect_status(ran.status, grpc::StatusCode::UNAVAILABLE, "WORKER_LOST",
                "the worker of cpu:0 ended while it ran counting, which overwrites its own input; "
                "what it wrote is unknown, so it is not run again");
}

TEST_F(ProgramTest, RefusesAProgramThatIsNotThere) {
  v1::RunProgramRequest request;
  request.set_program_id("none");
  expect_status(run(request).status, grpc::StatusCode::NOT_FOUND, "PROGRAM",
                "there is no program none (any more); define it again");
}

TEST_F(ProgramTest, RefusesACycle) {
  v1::DefineProgramRequest request = counting("inc");
  v1::Program& program = *request.mutable_program();
  program.mutable_nodes(0)->set_inputs(0, 1);
  expect_status(status_of_define(request), grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_CYCLE",
                "the nodes of counting wait for each other: inc needs inc; what one step hands to "
                "the next is a parameter");
}

TEST_F(ProgramTest, RefusesWhatIsGivenWrongly) {
  const std::string w = service_->upload({1, 2, 3});
  const auto refused = [&](const v1::RunProgramRequest& request, const std::string& reason,
                           const std::string& message) {
    expect_status(run(request).status, grpc::StatusCode::INVALID_ARGUMENT, reason, message);
  };
  v1::RunProgramRequest request = run_of("inc", w);
  request.clear_given();
  refused(request, "PROGRAM_GIVEN", "counting needs parameter w, which inc reads, but got none");
  *request.add_given()->mutable_argument() = inline_argument({1});
  refused(request, "PROGRAM_GIVEN",
          "parameter w of counting is given no tensor, which updates could change");
  request = run_of("inc", w);
  *request.add_given() = request.given(0);
  refused(request, "PROGRAM_GIVEN", "parameter w of counting is given twice");
  request = run_of("inc", w);
  request.mutable_given(0)->set_value(1);
  refused(request, "PROGRAM_VALUE",
          "w1 of counting is given, but a node makes it; give inputs, data sets and parameters");
  request.mutable_given(0)->set_value(9);
  refused(request, "PROGRAM_VALUE", "value 9 is given, but counting has 2 values");
  request = run_of("inc", w);
  request.set_epochs(2);
  refused(request, "PROGRAM_STEPS",
          "counting has no data sets to pass over; say how many steps, not epochs");
}

TEST_F(ProgramTest, RefusesStepsThatContradictEachOther) {
  v1::DefineProgramRequest program = counting("inc");
  program.mutable_program()->mutable_values(0)->set_kind(v1::VALUE_KIND_BATCH);
  program.mutable_program()->clear_updates();
  program.mutable_program()->add_outputs(1);
  v1::RunProgramRequest request;
  request.set_program_id(define(program));
  request.set_batch(2);
  *request.add_given()->mutable_argument() = inline_argument({1, 2, 3, 4});
  request.set_steps(3);
  request.set_epochs(2);
  expect_status(run(request).status, grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_STEPS",
                "3 steps and 2 epochs are asked for; say one of the two");
  request.set_steps(0);
  request.set_epochs(5'000'000'000);
  expect_status(run(request).status, grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_STEPS",
                "5000000000 epochs are asked for; the limit is 4294967295");
  *request.mutable_given(0)->mutable_argument() = inline_argument({});
  expect_status(run(request).status, grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_BATCH",
                "data set w has no rows, of which a step takes a batch");
}

TEST_F(ProgramTest, RefusesAnInputInTheTensorOfAParameter) {
  v1::DefineProgramRequest program = counting("inc");
  program.mutable_program()->add_values()->set_name("x");
  program.mutable_program()->mutable_values(2)->set_kind(v1::VALUE_KIND_INPUT);
  const std::string w = service_->upload({1, 2, 3});
  v1::RunProgramRequest request;
  request.set_program_id(define(program));
  *request.add_given()->mutable_argument() = tensor_argument(w);
  *request.add_given()->mutable_argument() = tensor_argument(w);
  request.mutable_given(1)->set_value(2);
  expect_status(run(request).status, grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_OVERLAP",
                "input x and parameter w of counting are one tensor, but the parameter changes; "
                "upload it twice");
}

TEST_F(ProgramTest, RefusesWhatIsPastItsLimits) {
  v1::DefineProgramRequest request = counting("inc");
  for (int i = 0; i < 5'000; ++i)
    request.mutable_program()->add_nodes();
  expect_status(status_of_define(request), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT",
                "the program has 5001 nodes; the limit is 4096");
}

TEST_F(ProgramTest, RefusesAValueOfAnUnknownKind) {
  v1::DefineProgramRequest request = counting("inc");
  request.mutable_program()->mutable_values(1)->set_kind(static_cast<v1::ValueKind>(77));
  expect_status(status_of_define(request), grpc::StatusCode::INVALID_ARGUMENT, "PROGRAM_VALUE",
                "value w1 has an unknown kind (number 77)");
}

TEST_F(ProgramTest, RefusesMoreKernelsThanAWorkerKeeps) {
  v1::DefineProgramRequest request = counting("inc");
  v1::Program& program = *request.mutable_program();
  program.clear_updates();
  // Each node makes an output of its own, so that none is joined with another.
  program.add_outputs(1);
  for (uint32_t i = 0; i < 450; ++i) {
    program.add_values();
    *program.add_nodes() = program.nodes(0);
    program.mutable_nodes(program.nodes_size() - 1)->set_outputs(0, 2 + i);
    program.add_outputs(2 + i);
  }
  v1::RunProgramRequest run_request;
  run_request.set_program_id(define(request));
  *run_request.add_given()->mutable_argument() = tensor_argument(service_->upload({1, 2, 3}));
  expect_status(run(run_request).status, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT",
                "a step of counting has 451 kernels; the limit is 400");
}

TEST_F(ProgramTest, PlansWithoutRunning) {
  const v1::PlanProgramResponse plan = plan_of("inc", 100);
  ASSERT_EQ(plan.kernels_size(), 1);
  EXPECT_EQ(plan.kernels(0).name(), "inc");
  EXPECT_EQ(plan.kernels(0).read_bytes(), 400);
  EXPECT_EQ(plan.arena_bytes(), 448);
  EXPECT_EQ(plan.values(1).becomes(), "w");
}

TEST_F(ProgramTest, FindsAPlanAgainAfterARestartAndCompilesNothing) {
  const std::string before = decided(plan_of("inc", 100));
  EXPECT_EQ(service_->counter("plans"), 1);
  restart();
  connect();
  const v1::PlanProgramResponse plan = plan_of("inc", 100);
  EXPECT_EQ(decided(plan), before);
  EXPECT_EQ(plan.kernels(0).cache(), v1::CACHE_LEVEL_DISK);
  EXPECT_EQ(service_->counter("plans"), 0);
  EXPECT_EQ(service_->counter("stored_plans"), 1);
  EXPECT_EQ(service_->counter("compiles"), 0);
}

TEST_F(ProgramTest, RunsAPlanThatWasFoundAgain) {
  ASSERT_TRUE(run(run_of("inc", service_->upload({1, 2, 3}))).status.ok());
  restart();
  connect();
  const std::string w = service_->upload({1, 2, 3});
  ASSERT_TRUE(run(run_of("inc", w)).status.ok());
  EXPECT_EQ(contents(w), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(service_->counter("plans"), 0);
}

TEST_F(ProgramTest, PlansAnewForOtherShapesAndOtherPrograms) {
  plan_of("inc", 100);
  plan_of("inc", 100);
  EXPECT_EQ(service_->counter("plans"), 1);
  plan_of("inc", 200);
  plan_of("inc2", 100);
  EXPECT_EQ(service_->counter("plans"), 3);
}

TEST_F(ProgramTest, CompilesAKernelThatAStoredPlanHasLost) {
  const v1::PlanProgramResponse plan = plan_of("inc", 100);
  restart();
  const std::string& id = plan.kernels(0).kernel_id();
  const std::string key = id.substr(0, id.find('-'));
  ASSERT_TRUE(
      std::filesystem::remove(folder_.path() / "artifacts" / key.substr(0, 2) / (key + ".kart")));
  connect();
  EXPECT_EQ(decided(plan_of("inc", 100)), decided(plan));
  EXPECT_EQ(service_->counter("stored_plans"), 1);
  EXPECT_EQ(service_->counter("compiles"), 1);
}

}  // namespace
}  // namespace kiln::server

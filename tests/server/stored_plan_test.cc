#include "server/programs/stored_plan.h"

#include "kiln/internal/plans.pb.h"
#include "tests/server/service_test.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

const CompileSetting kSetting{.build_id = "build", .arch = [](TargetKind) { return "znver4"; }};

/// y = x + 1 by one kernel; y lies in the arena, of 448 bytes.
CheckedPlan small_plan() {
  CheckedPlan made;
  made.plan.program.name = "small";
  made.plan.program.values = {{"x", program::ValueKind::Input}, {"y", program::ValueKind::Made}};
  made.plan.program.nodes.emplace_back().name = "inc";
  made.plan.shapes.values = {{DType::Float32, {100}}, {DType::Float32, {100}}};
  made.plan.values = {{program::Place::Given, 0, ""}, {program::Place::Arena, 0, "z"}};
  program::PlannedKernel& kernel = made.plan.kernels.emplace_back();
  kernel.name = "inc";
  kernel.nodes = {0};
  kernel.joined.inputs = {0};
  kernel.joined.outputs = {1};
  kernel.read_bytes = 400;
  kernel.written_bytes = 400;
  made.plan.memory.bytes = 448;
  made.requests.push_back(check_request(add_one("inc"), kSetting));
  return made;
}

internal::StoredPlan stored_small_plan() {
  internal::StoredPlan stored;
  EXPECT_TRUE(stored.ParseFromString(pack_plan(small_plan())));
  return stored;
}

TEST(StoredPlan, ComesBackAsItWas) {
  const CheckedPlan before = small_plan();
  const CheckedPlan after = unpack_plan(pack_plan(before), before.plan.program, kSetting);
  EXPECT_EQ(pack_plan(after), pack_plan(before));
  EXPECT_EQ(after.requests[0].form, before.requests[0].form);
  EXPECT_EQ(after.requests[0].key, before.requests[0].key);
  EXPECT_EQ(after.requests[0].kernel_id, before.requests[0].kernel_id);
  EXPECT_EQ(after.requests[0].names.parameters, before.requests[0].names.parameters);
}

TEST(StoredPlan, RefusesWhatIsNone) {
  const program::Program program = small_plan().plan.program;
  const auto expect_none = [&](const std::string& bytes) {
    const Error error =
        testing::expect_error([&] { unpack_plan(bytes, program, kSetting); }, ErrorKind::Internal,
                              "what it says is no plan of its program");
    EXPECT_EQ(error.reason(), "PLAN_ENTRY");
  };
  const std::vector<std::function<void(internal::StoredPlan&)>> damages = {
      [](auto& plan) { plan.mutable_values()->RemoveLast(); },
      [](auto& plan) { plan.mutable_values(1)->set_offset(64); },
      [](auto& plan) { plan.mutable_values(1)->set_offset(-64); },
      [](auto& plan) { plan.mutable_values(1)->set_place(9); },
      [](auto& plan) { plan.mutable_values(1)->set_kind(9); },
      [](auto& plan) { plan.mutable_values(1)->set_shape(0, -1); },
      [](auto& plan) { plan.mutable_values(1)->set_type(static_cast<v1::DataType>(99)); },
      [](auto& plan) { plan.mutable_kernels(0)->set_outputs(0, 2); },
      [](auto& plan) { plan.mutable_kernels(0)->set_inputs(0, 2); },
      [](auto& plan) { plan.mutable_kernels(0)->set_nodes(0, 1); },
      [](auto& plan) { plan.mutable_kernels(0)->mutable_names()->add_lines(1); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    internal::StoredPlan stored = stored_small_plan();
    damages[i](stored);
    SCOPED_TRACE(i);
    expect_none(stored.SerializeAsString());
  }
  expect_none("no plan");
}

}  // namespace
}  // namespace kiln::server

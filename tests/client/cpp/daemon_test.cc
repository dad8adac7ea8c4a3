#include "tests/support/daemon.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>
#include <signal.h>
#include <sys/types.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/on_a_daemon.h"

namespace kiln::test {
namespace {

/// The client against a real daemon, which all tests of this file share.
class RealDaemon : public OnADaemon {
 protected:
  static Array counting(const std::vector<std::int64_t>& shape) {
    Array array(shape);
    const auto values = array.values<float>();
    std::iota(values.begin(), values.end(), 0.0F);
    return array;
  }

  /// C = A B with symbolic sizes.
  static std::vector<Tensor> matmul() {
    const Expr n = var("n");
    const Expr m = var("m");
    const Expr l = var("l");
    const Tensor A = placeholder({n, l}, float32, "A");
    const Tensor B = placeholder({l, m}, float32, "B");
    const ReduceAxis k = reduce_axis(l, "k");
    const Tensor C = compute({n, m}, [&](Expr i, Expr j) { return sum(A(i, k) * B(k, j), k); },
                             {"C", {"i", "j"}});
    return {A, B, C};
  }

  static void expect_product(const Array& a, const Array& b, const Array& c) {
    const auto n = static_cast<std::size_t>(a.shape()[0]);
    const auto l = static_cast<std::size_t>(a.shape()[1]);
    const auto m = static_cast<std::size_t>(b.shape()[1]);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < m; ++j) {
        double expected = 0;
        for (std::size_t k = 0; k < l; ++k) {
          expected += a.values<float>()[i * l + k] * b.values<float>()[k * m + j];
        }
        ASSERT_NEAR(c.values<float>()[i * m + j], expected, 1e-5 * expected + 1e-5)
            << i << ", " << j;
      }
    }
  }

  Connection connection_ = connect(daemon_->address());
};

TEST_F(RealDaemon, DifferentiatesTensors) {
  const std::vector<Tensor> product = matmul();
  const Tensor& A = product[0];
  const Tensor G = placeholder(product[2].shape(), float32, "G");
  const std::vector<Tensor> gradients = connection_.gradient(product[2], {A, product[1]}, G);
  ASSERT_EQ(gradients.size(), 2U);
  // They go on being computed with: a step of descent.
  const Tensor stepped = compute(
      A.shape(), [&](Expr i, Expr j) { return A(i, j) - gradients[0](i, j); }, "stepped");
  const Kernel f = connection_.build({A, product[1], G, stepped});
  Array g({1, 2});
  g.values<float>()[0] = 1;
  g.values<float>()[1] = 10;
  // Of A[0, k] it is sum over j of G[0, j] * B[k, j].
  const Array result = f(counting({1, 2}), counting({2, 2}), g)[0];
  EXPECT_EQ(result.values<float>()[0], 0.0F - 10.0F);
  EXPECT_EQ(result.values<float>()[1], 1.0F - 32.0F);
  EXPECT_EQ(connection_.differentiate(Definition(product, "matmul"), {}, {"A"}).text(),
            "kernel matmul(A: float32[n, l], B: float32[l, m], C_head: float32[n, m])"
            " -> (A_grad: float32[n, l]) {\n"
            "  A_grad[i, k] = sum[j < m](C_head[i, j] * B[k, j])\n}\n");
  expect_client_error([&] { connection_.gradient(product[2], {}, G); }, ErrorKind::InvalidArgument,
                      "GRADIENT", "gradient of C has no inputs; write gradient(Y, {A, B})");
  expect_client_error([&] { connection_.gradient(product[2], {A}, A); }, ErrorKind::InvalidArgument,
                      "GRADIENT_HEAD",
                      "the head A has 2 dimensions, of which the last must be the 2 of C");
}

TEST_F(RealDaemon, MultipliesMatricesOfAnySizeWithOneKernel) {
  const Kernel f = connection_.build(Definition(matmul(), "matmul"));
  const std::int64_t compiles = connection_.describe().counters.at("compiles");
  for (const auto& [n, l, m] : std::vector<std::array<std::int64_t, 3>>{
           {3, 5, 4}, {33, 17, 65}, {1, 1, 1}, {0, 4, 2}, {2, 0, 3}}) {
    const Array a = counting({n, l});
    const Array b = counting({l, m});
    expect_product(a, b, f(a, b));
  }
  EXPECT_EQ(connection_.describe().counters.at("compiles"), compiles);
}

TEST_F(RealDaemon, FollowsASchedule) {
  const std::vector<Tensor> tensors = matmul();
  const Tensor& C = tensors[2];
  const Schedule s = create_schedule(C);
  const auto [io, jo, ii, ji] = s[C].tile(C.axis(0), C.axis(1), 8, 8);
  const auto [ko, ki] = s[C].split(C.reduce_axes()[0], 4);
  s[C].reorder({io, jo, ko, ki, ii, ji});
  s[C].vectorize(ji);
  s[C].parallel(io);
  const Kernel f = connection_.build(s, tensors);
  const Array a = counting({21, 13});
  const Array b = counting({13, 30});
  const Array c({21, 30});
  f(a, b, c);
  expect_product(a, b, c);
}

TEST_F(RealDaemon, ScansInOrder) {
  const Expr m = var("m");
  const Expr n = var("n");
  const Tensor X = placeholder({m, n}, float32, "X");
  const Tensor state = placeholder({m, n}, float32, "state");
  const Tensor init = compute(
      {1, n}, [&](Expr, Expr i) { return X(0, i); }, "init");
  const Tensor update = compute(
      {m, n}, [&](Expr t, Expr i) { return state(t - 1, i) + X(t, i); }, "update");
  const Kernel f = connection_.build({X, scan(init, update, state, {X}, "S")});
  const Array x = counting({10, 31});
  for (float& value : x.values<float>())
    value = 0.1F * value;
  const Array s = f(x);
  std::vector<float> sums(31, 0);
  for (std::size_t t = 0; t < 10; ++t) {
    for (std::size_t i = 0; i < 31; ++i) {
      sums[i] = t == 0 ? x.values<float>()[i] : sums[i] + x.values<float>()[t * 31 + i];
      ASSERT_EQ(s.values<float>()[t * 31 + i], sums[i]) << t << ", " << i;
    }
  }
}

TEST_F(RealDaemon, StreamsLargeArrays) {
  const Expr n = var("n");
  const Tensor A = placeholder({n}, float32, "A");
  const Kernel f = connection_.build({A, compute(
                                             {n}, [&](Expr i) { return A(i) + 1; }, "B")});
  const Array a = counting({3'000'001});
  const Array b = f(a);
  for (std::size_t i = 0; i < a.size(); i += 1000) {
    ASSERT_EQ(b.values<float>()[i], a.values<float>()[i] + 1);
  }
  EXPECT_GT(f.timings().upload, 0);
}

TEST_F(RealDaemon, KeepsArraysBetweenCalls) {
  const Expr n = var("n");
  const Tensor A = placeholder({n}, float32, "A");
  const Kernel f = connection_.build({A, compute(
                                             {n}, [&](Expr i) { return A(i) * 2; }, "B")});
  std::vector<RemoteArray> value{connection_.upload(counting({4}))};
  for (int i = 0; i < 3; ++i)
    value = f.call_remote({value[0]});
  EXPECT_EQ(to_string(value[0].download()), "[ 0.  8. 16. 24.]");
  f(value[0], value[0]);  // in place
  EXPECT_EQ(to_string(value[0].download()), "[ 0. 16. 32. 48.]");
}

TEST_F(RealDaemon, CopiesArraysOfTheService) {
  const RemoteArray first = connection_.upload(counting({4}));
  EXPECT_EQ(first.device(), "cpu:0");
  const RemoteArray second = first.copy_to("cpu:0");
  EXPECT_EQ(to_string(second.download()), "[0. 1. 2. 3.]");
  connection_.upload(Array({4})).copy_to(second);
  EXPECT_EQ(to_string(second.download()), "[0. 0. 0. 0.]");
  EXPECT_EQ(to_string(first.download()), "[0. 1. 2. 3.]");
  expect_client_error([&] { first.copy_to("cuda:9"); }, ErrorKind::Unavailable, "NO_DEVICE",
                      "there is no device cuda:9 here; kiln devices lists those there are");
  expect_client_error(
      [&] { connection_.upload(Array({3})).copy_to(second); }, ErrorKind::InvalidArgument,
      "COPY_SHAPE", "the tensor to overwrite is float32 (4,), but the one to copy is float32 (3,)");
}

TEST_F(RealDaemon, RunsJobs) {
  const Job job =
      connection_.submit(Definition(matmul(), "matmul"), {counting({2, 2}), counting({2, 2})});
  EXPECT_EQ(job.watch().phase, JobPhase::Done);
  const JobResult result = job.result();
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(result.outputs[0].name, "C");
  EXPECT_EQ(to_string(result.outputs[0].value), "[[ 2.  3.]\n [ 6. 11.]]");
}

TEST_F(RealDaemon, ExplainsWrongShapes) {
  const Kernel f = connection_.build(Definition(matmul(), "matmul"));
  expect_client_error(
      [&] {
        f(counting({5, 500}), counting({400, 5}));
      },
      ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
      "argument B of matmul: dimension 0 is 400, but must be 500 (l, from dimension "
      "1 of A)");
  const Array c({9, 9});
  expect_client_error(
      [&] {
        f(counting({5, 5}), counting({5, 5}), c);
      },
      ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
      "argument C of matmul: dimension 0 is 9, but must be 5 (n, from dimension 0 "
      "of A)");
}

TEST_F(RealDaemon, NamesTheLineOfAWrongDefinition) {
  const Expr n = var("n");
  const Tensor X = placeholder({n}, float32, "X");
  const Tensor state = placeholder({n}, float32, "state");
  const auto first = [&](Expr) { return X(0); };
  const auto next = [&](Expr t) { return state(t) + X(t); };
  const Tensor init = compute({1}, first, "init");
  const Tensor update = compute({n}, next, {"update", {"t"}});
  const int line = __LINE__ - 1;
  try {
    connection_.build({X, scan(init, update, state)});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_NE(error.file().find("daemon_test.cc"), std::string::npos);
    EXPECT_EQ(error.message(),
              "scan scan: update reads state at t (current step); it may read only t-1");
  }
}

TEST_F(RealDaemon, ShowsSourcesAndReport) {
  const Kernel f = connection_.build(Definition(matmul(), "matmul"));
  EXPECT_NE(f.source("llvm").find("define"), std::string::npos);
  EXPECT_NE(f.source("lowered").find("fn matmul("), std::string::npos);
  EXPECT_NE(f.report().find("\"guards\""), std::string::npos);
  EXPECT_NE(connection_.lower(Definition(matmul(), "matmul")).find("for i in 0..n"),
            std::string::npos);
  for (const double seconds : f.measure({counting({8, 8}), counting({8, 8})}, 5, 3)) {
    EXPECT_GT(seconds, 0);
  }
}

TEST(Restart, IsNotSeenByAKernel) {
  const testing::TemporaryFolder folder;
  const std::string address = "unix:" + (folder.path() / "s").string();
  const auto start = [&] {
    return std::make_unique<testing::Daemon>(testing::Daemon::Options{
        .program = KILND, .listen = address, .cache_dir = folder.path() / "cache"});
  };
  auto daemon = start();
  const Expr n = var("n");
  const Tensor A = placeholder({n}, float32, "A");
  const Connection connection = connect(address);
  const Kernel f = connection.build({A, compute(
                                            {n}, [&](Expr i) { return A(i) + 1; }, "B")});
  const RemoteArray kept = connection.upload(Array({2}));
  EXPECT_EQ(to_string(f(Array({2}))), "[1. 1.]");
  daemon.reset();
  daemon = start();
  EXPECT_EQ(to_string(f(Array({2}))), "[1. 1.]");
  EXPECT_EQ(f.build_timings().cache, "disk");
  EXPECT_THROW(f(kept), HandleLost);
}

TEST(Restart, OfThePrivateDaemonIsDoneByTheClient) {
  const testing::TemporaryFolder folder;
  ::setenv("KILN_DAEMON", KILND, 1);
  ::unsetenv("KILN_ADDRESS");
  ::setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const Connection connection = connect();
  const Expr n = var("n");
  const Tensor A = placeholder({n}, float32, "A");
  const Kernel f = connection.build({A, compute(
                                            {n}, [&](Expr i) { return A(i) + 1; }, "B")});
  const auto first = static_cast<pid_t>(connection.describe().pid);
  ::kill(first, SIGKILL);
  EXPECT_EQ(to_string(f(Array({2}))), "[1. 1.]");
  const auto second = static_cast<pid_t>(connection.describe().pid);
  EXPECT_NE(second, first);
  connection.close();
  ::kill(second, SIGTERM);
}

/// A daemon on TCP with a certificate for localhost, which is its own authority, and a token.
class SecureDaemon : public ::testing::Test {
 protected:
  SecureDaemon() {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " +
        file("key.pem") + " -out " + file("cert.pem") + " 2> /dev/null";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl made no certificate");
    std::ofstream(file("token")) << "secret\n";
    daemon_ = std::make_unique<testing::Daemon>(
        testing::Daemon::Options{.program = KILND,
                                 .listen = "127.0.0.1:0",
                                 .flags = {"--tls-cert", file("cert.pem"), "--tls-key",
                                           file("key.pem"), "--token-file", file("token")}});
  }

  std::string file(const std::string& name) const { return folder_.path() / name; }

  testing::TemporaryFolder folder_;
  std::unique_ptr<testing::Daemon> daemon_;
};

TEST_F(SecureDaemon, AnswersWhoHasTheTokenAndTrustsItsAuthority) {
  const Connection connection =
      connect(daemon_->address(), {.token = "secret", .ca = file("cert.pem")});
  EXPECT_EQ(connection.describe().version, version());
  const Expr n = var("n");
  const Tensor A = placeholder({n}, float32, "A");
  const Kernel f = connection.build({A, compute(
                                            {n}, [&](Expr i) { return A(i) + 1; }, "B")});
  EXPECT_EQ(f(Array({1'000'000})).at(0).values<float>()[999'999], 1);  // streamed, with a session
}

TEST_F(SecureDaemon, RefusesAWrongToken) {
  const Connection connection =
      connect(daemon_->address(), {.token = "guess", .ca = file("cert.pem")});
  expect_client_error([&] { connection.describe(); }, ErrorKind::Unauthenticated, "TOKEN",
                      "this daemon asks for a token, and the one given is missing or wrong");
}

TEST_F(SecureDaemon, IsNotTrustedWithoutItsAuthority) {
  EXPECT_THROW(connect(daemon_->address(), {.token = "secret"}).describe(), Unavailable);
}

TEST_F(RealDaemon, TunesForEveryLaterBuild) {
  const Connection connection = connect(daemon_->address());
  const Definition definition(matmul());
  std::vector<TuneTrial> trials;
  TuneStart begun;
  const TuneOptions options{.sizes = {{"n", 40}, {"m", 48}, {"l", 56}},
                            .trials = 6,
                            .on_start = [&](const TuneStart& start) { begun = start; },
                            .on_trial = [&](const TuneTrial& trial) { trials.push_back(trial); }};
  const TuneResult result = connection.tune(definition, options);
  EXPECT_EQ(result.end, "trials");
  EXPECT_EQ(result.trials, 6U);
  EXPECT_EQ(trials.size(), 6U);
  EXPECT_GT(begun.candidates, 6);
  EXPECT_EQ(begun.trials, 6U);
  // Which kind of them depends on the machine.
  EXPECT_TRUE(trials[0].candidate.starts_with("C: outer products")) << trials[0].candidate;
  EXPECT_LE(result.best_seconds, result.default_seconds);
  EXPECT_EQ(result.record.empty(), result.candidate.empty());
  const std::string note = "schedule from tuning record " + result.record;
  EXPECT_EQ(connection.build(definition).report().find(note) != std::string::npos,
            !result.record.empty());
}

TEST_F(RealDaemon, PredictsTheSchedulesThatAKernelMayHave) {
  const Connection connection = connect(daemon_->address());
  const Definition definition(matmul(), "matmul");
  const PredictOptions options{.sizes = {{"n", 512}, {"m", 512}, {"l", 512}}, .threads = 1};
  const Predictions predictions = connection.predict(definition, options);
  EXPECT_NE(predictions.machine.find("multiply-add"), std::string::npos) << predictions.machine;
  EXPECT_NE(predictions.surroundings.find("measured on this host"), std::string::npos);
  ASSERT_GT(predictions.schedules.size(), 6U);
  for (const PredictedSchedule& schedule : predictions.schedules) {
    EXPECT_EQ(schedule.name.substr(0, 3), "C: ");
    EXPECT_FALSE(schedule.steps.empty());
    EXPECT_GT(schedule.seconds, 0);
    EXPECT_EQ(schedule.terms.size(), 8U);
  }
  const auto quicker = [](const auto& a, const auto& b) { return a.seconds < b.seconds; };
  EXPECT_TRUE(
      std::is_sorted(predictions.schedules.begin() + 1, predictions.schedules.end(), quicker));

  // Twice the work takes about twice as long, and another CPU another time.
  PredictOptions larger = options;
  larger.sizes["n"] = 1024;
  const double ratio = connection.predict(definition, larger).schedules[0].seconds /
                       predictions.schedules[0].seconds;
  EXPECT_GT(ratio, 1.8);
  EXPECT_LT(ratio, 2.4);
  BuildOptions old;
  old.arch = "x86-64-v2";
  const Predictions on_another = connection.predict(definition, options, old);
  EXPECT_NE(on_another.surroundings.find("estimated"), std::string::npos);
  EXPECT_GT(on_another.schedules[0].seconds, 1.5 * predictions.schedules[0].seconds);
}

TEST_F(RealDaemon, PredictsForGpusThatAreNotHere) {
  const Connection connection = connect(daemon_->address());
  const Definition definition(matmul(), "matmul");
  const auto seconds = [&](const std::string& arch) {
    BuildOptions gpu;
    gpu.target = "cuda";
    gpu.arch = arch;
    const Predictions predictions =
        connection.predict(definition, {.sizes = {{"n", 4096}, {"m", 4096}, {"l", 4096}}}, gpu);
    EXPECT_EQ(predictions.surroundings,
              "one H200 has confirmed predictions so far, most to a quarter (docs/gpu.md)");
    return predictions.schedules.at(0).seconds;
  };
  // 2 * 4096^3 operations are 2.2 ms at the 62 TFLOP/s of an H100's lanes; an L4 has half of that.
  EXPECT_GT(seconds("sm_90"), 2.2e-3);
  EXPECT_LT(seconds("sm_90"), 12e-3);
  EXPECT_GT(seconds("sm_89"), 1.8 * seconds("sm_90"));
}

TEST_F(RealDaemon, SaysWhatAPredictionMisses) {
  const Connection connection = connect(daemon_->address());
  const Definition definition(matmul(), "matmul");
  expect_client_error(
      [&] {
        connection.predict(definition, {.sizes = {{"n", 8}, {"m", 8}}});
      },
      ErrorKind::InvalidArgument, "SIZE",
      "a prediction of matmul is for certain sizes, but l is not given; give each "
      "size");
  expect_client_error(
      [&] {
        connection.predict(definition, {.sizes = {{"n", 8}, {"m", -8}, {"l", 8}}});
      },
      ErrorKind::InvalidArgument, "SIZE", "the size m of matmul is -8; it must be 0 or more");
  BuildOptions mistyped;
  mistyped.arch = "znvr5";
  try {
    connection.predict(definition, {.sizes = {{"n", 8}, {"m", 8}, {"l", 8}}}, mistyped);
    ADD_FAILURE() << "no error";
  } catch (const Unsupported& error) {
    EXPECT_EQ(error.reason(), "ARCH");
    EXPECT_TRUE(
        error.message().starts_with("there is no CPU znvr5; names are those of -march, as "))
        << error.message();
  }
  mistyped.target = "cuda";
  expect_client_error(
      [&] {
        connection.predict(definition, {.sizes = {{"n", 8}, {"m", 8}, {"l", 8}}}, mistyped);
      },
      ErrorKind::InvalidArgument, "ARCH",
      "znvr5 is not an architecture of CUDA; they are written like sm_90");
  BuildOptions interpreted;
  interpreted.target = "interpreter";
  expect_client_error(
      [&] {
        connection.predict(definition, {.sizes = {{"n", 8}, {"m", 8}, {"l", 8}}}, interpreted);
      },
      ErrorKind::Unsupported, "PREDICT_TARGET",
      "times are predicted on CPUs and GPUs; what is interpreted is a thousand times slower");
}

TEST_F(RealDaemon, StopsASearchWhenItIsAskedTo) {
  const Connection connection = connect(daemon_->address());
  std::stop_source stop;
  TuneOptions options{.sizes = {{"n", 64}, {"m", 64}, {"l", 65}}};
  options.stop = stop.get_token();
  options.on_trial = [&](const TuneTrial& trial) {
    if (trial.number == 2) stop.request_stop();
  };
  const TuneResult result = connection.tune(Definition(matmul()), options);
  EXPECT_EQ(result.end, "stopped");
  EXPECT_GE(result.trials, 3U);
  EXPECT_GT(result.default_seconds, 0);
}

}  // namespace
}  // namespace kiln::test

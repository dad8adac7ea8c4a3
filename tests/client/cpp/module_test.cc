#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "kiln/v1/service.pb.h"
#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/fake_service.h"

namespace kiln::test {
namespace {

/// Kernels that are saved to files and loaded again.
class Modules : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// B = A + 1
  static Definition increment(const std::string& name) {
    const Expr n = var("n");
    const Tensor A = placeholder({n}, float32, "A");
    const Tensor B = compute(
        {n}, [&](Expr i) { return A(i) + 1; }, "B");
    return Definition({A, B}, name);
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  static v1::SavedModule read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    v1::SavedModule module;
    EXPECT_TRUE(module.ParseFromIstream(&in));
    return module;
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  void expect_refused(const std::string& path, const std::string& message) {
    expect_client_error([&] { connection_.load_module(path); }, ErrorKind::InvalidArgument,
                        "MODULE_FILE", message);
  }

  static std::filesystem::path made_folder() {
    std::string name = std::filesystem::temp_directory_path() / "kiln-modules-XXXXXX";
    return mkdtemp(name.data());
  }

  const std::filesystem::path folder_ = made_folder();
  FakeService service_;
  Connection connection_ = connect(service_.address());
};

TEST_F(Modules, KeepWhatWasBuilt) {
  const Kernel built = connection_.build(increment("plus"), {.automatic = false, .strict = true});
  const v1::CompileRequest request = service_.last_compile();
  built.export_library(path("plus.kmod"));
  const Kernel loaded = connection_.load_module(path("plus.kmod"));
  EXPECT_EQ(service_.last_compile().SerializeAsString(), request.SerializeAsString());
  EXPECT_EQ(loaded.name(), "plus");
  EXPECT_EQ(loaded.parameters()[1].name, "B");
  const Array b = loaded(Array(std::vector<float>{1, 2}, {2}));
  EXPECT_EQ(to_string(b), "[2. 3.]");
}

TEST_F(Modules, HoldSeveralKernels) {
  Kernels{connection_.build(increment("one")), connection_.build(increment("two"))}.export_library(
      path("both.kmod"));
  const Kernels both = connection_.load_module(path("both.kmod"));
  EXPECT_EQ(both.get_function("two").name(), "two");
  expect_client_error([&] { both.get_function("three"); }, ErrorKind::NotFound, "FUNCTION",
                      "there is no function three; there are one, two");
  expect_client_error([&] { static_cast<void>(static_cast<Kernel>(both)); },
                      ErrorKind::InvalidArgument, "KERNEL_COUNT",
                      "the module holds 2 kernels: take one by get_function(name)");
}

TEST_F(Modules, KeepTheSizesThatPythonCountsAmongTheArguments) {
  connection_.build(increment("plus")).export_library(path("plus.kmod"));
  v1::SavedModule module = read(path("plus.kmod"));
  module.mutable_kernels(0)->add_arguments("n");
  module.mutable_kernels(0)->add_arguments("");
  write(path("python.kmod"), module.SerializeAsString());
  connection_.load_module(path("python.kmod")).export_library(path("again.kmod"));
  EXPECT_EQ(read(path("again.kmod")).SerializeAsString(), module.SerializeAsString());
}

TEST_F(Modules, RefuseWhatIsNoModule) {
  expect_refused(path("none"),
                 "cannot read the module " + path("none") + ": No such file or directory");
  write(path("text"), "a text");
  expect_refused(path("text"), path("text") + " is no module that export_library of Kiln saved");

  const Kernel built = connection_.build(increment("plus"));
  built.export_library(path("plus"));
  v1::SavedModule module = read(path("plus"));
  module.mutable_kernels(0)->mutable_request()->back() ^= 1;
  write(path("damaged"), module.SerializeAsString());
  expect_refused(path("damaged"), "the module " + path("damaged") + " is damaged; build it again");
  module.set_format("kiln module 9");
  write(path("newer"), module.SerializeAsString());
  expect_refused(path("newer"), path("newer") +
                                    " was saved by another version of Kiln (kiln module 9); build "
                                    "it again");
  expect_client_error(
      [&] { built.export_library(path("no/folder")); }, ErrorKind::InvalidArgument, "MODULE_FILE",
      "cannot write the module " + path("no/folder") + ": No such file or directory");
}

}  // namespace
}  // namespace kiln::test

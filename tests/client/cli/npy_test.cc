#include "client/cli/npy.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::cli {
namespace {

using test::expect_client_error;

/// A file as numpy writes it: `version` 1 or 2, the dictionary, the bytes of the numbers.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string header = dictionary;
  const std::size_t before = version == 1 ? 10 : 12;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const int length_bytes = version == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return file + header + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Array read(const std::string& file, DType wanted = float32) {
  std::istringstream in(file);
  return read_npy(in, "a.npy", wanted);
}

std::string written(const Array& array) {
  std::ostringstream out;
  write_npy(out, array);
  return out.str();
}

TEST(Npy, ReadsRowMajorNumbers) {
  const Array a = read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                           bytes_of<float>({1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(a.shape(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(to_string(a), "[[1. 2. 3.]\n [4. 5. 6.]]");
}

TEST(Npy, ReadsColumnMajorNumbers) {
  const Array a = read(npy("{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }",
                           bytes_of<std::int64_t>({1, 4, 2, 5, 3, 6})));
  EXPECT_EQ(to_string(a), "[[1 2 3]\n [4 5 6]]");
}

TEST(Npy, ReadsColumnMajorNumbersOfThreeDimensions) {
  // numpy.asfortranarray(numpy.arange(24).reshape(2, 3, 4))
  std::vector<std::int32_t> values;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i)
        values.push_back(i * 12 + j * 4 + k);
    }
  }
  const Array a =
      read(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", bytes_of(values)));
  std::vector<std::int32_t> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(to_string(a), to_string(Array(expected, {2, 3, 4})));
}

TEST(Npy, ReadsBigEndianNumbers) {
  const Array a = read(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                           std::string("\x01\x02\x00\x07", 4)));
  EXPECT_EQ(to_string(a), "[258   7]");
}

TEST(Npy, ReadsFormatTwo) {
  EXPECT_EQ(to_string(read(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }",
                               std::string(1, '\1'), 2))),
            "True");
}

TEST(Npy, ReadsRawBytesAsTheSmallFloatThatIsWanted) {
  const std::string file =
      npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", std::string("\x80\x3f", 2));
  EXPECT_EQ(to_string(read(file, bfloat16)), "[1.]");
  // numpy writes float8_e4m3fn as V1 but float8_e5m2 as f1.
  for (const char* descr : {"<V1", "<f1"}) {
    const std::string bytes = npy(
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,), }", "\x38");
    EXPECT_EQ(to_string(read(bytes, float8_e4m3fn)), "[1.]");
    EXPECT_EQ(to_string(read(bytes, float8_e5m2)), "[0.5]");
  }
  expect_client_error([&] { read(file, float32); }, ErrorKind::InvalidArgument, "NPY",
                      "a.npy: it holds numbers of type V2, which Kiln does not have");
}

TEST(Npy, ReadsWhatItWrites) {
  for (const DType type : {boolean, int8, uint8, int16, uint16, float16, bfloat16, int32, uint32,
                           float32, int64, uint64, float64, float8_e4m3fn, float8_e5m2}) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {3}, {2, 0, 2}, {2, 3}}) {
      const Array a(shape, type);
      for (std::size_t i = 0; i < a.bytes().size(); ++i) {
        a.bytes()[i] = static_cast<std::byte>(i % 2);
      }
      const Array b = read(written(a), type);
      EXPECT_EQ(b.dtype(), type);
      EXPECT_EQ(b.shape(), shape);
      EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()))
          << name_of(type);
    }
  }
}

TEST(Npy, AlignsTheNumbersAsNumpyDoes) {
  const std::string file = written(Array({3}, float64));
  EXPECT_EQ((file.size() - 24) % 64, 0U);
  EXPECT_NE(file.find("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
}

TEST(Npy, RefusesWhatIsNoNpyFile) {
  expect_client_error([] { read("PK\x03\x04 and so on"); }, ErrorKind::InvalidArgument, "NPY",
                      "a.npy: this is no .npy file");
  expect_client_error([] { read("\x93NUM"); }, ErrorKind::InvalidArgument, "NPY",
                      "a.npy: the file ends in its header");
}

TEST(Npy, RefusesWhatNoNumpyWrites) {
  const std::string start = "\x93NUMPY";
  expect_client_error([&] { read(start + "\x09" + std::string(8, '\0')); },
                      ErrorKind::InvalidArgument, "NPY",
                      "a.npy: format 9 of .npy files is not known");
  expect_client_error([&] { read(start + "\x02" + std::string("\0\xff\xff\xff\x7f", 5)); },
                      ErrorKind::InvalidArgument, "NPY",
                      "a.npy: its header has 2147483647 bytes, which is too many");
  const std::string shape = "(9999999999999999999,)";
  expect_client_error(
      [&] { read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", "")); },
      ErrorKind::InvalidArgument, "NPY", "a.npy: dimension 9999999999999999999 is too large");
}

TEST(Npy, RefusesAFileThatIsTooShort) {
  expect_client_error(
      [] { read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "1234567")); },
      ErrorKind::InvalidArgument, "NPY",
      "a.npy: it holds 7 bytes of numbers, but its shape needs 24");
}

TEST(Npy, RefusesTypesThatKilnDoesNotHave) {
  expect_client_error(
      [] { read(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (), }", "12345678")); },
      ErrorKind::InvalidArgument, "NPY",
      "a.npy: it holds numbers of type c8, which Kiln does not have");
  expect_client_error(
      [] { read(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", "1234")); },
      ErrorKind::InvalidArgument, "NPY",
      "a.npy: it holds records or objects, not numbers of one type");
}

TEST(Npy, RefusesAHeaderWithoutItsParts) {
  expect_client_error([] { read(npy("{'descr': '<f4', 'shape': (), }", "1234")); },
                      ErrorKind::InvalidArgument, "NPY", "a.npy: its header lacks fortran_order");
  expect_client_error([] { read(npy("{'descr': '<f4', 'fortran_order': False}", "1234")); },
                      ErrorKind::InvalidArgument, "NPY", "a.npy: its header lacks a shape");
}

TEST(Npy, NamesAFileThatIsNotThere) {
  expect_client_error(
      [] { read_npy("/nowhere/a.npy", float32); }, ErrorKind::NotFound, "FILE",
      "/nowhere/a.npy cannot be read: there is no such file, or no right to read it");
}

TEST(Npy, WritesThroughLinksAndKeepsPermissions) {
  const auto folder = std::filesystem::temp_directory_path() / "kiln-npy-through";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Array array(std::vector<float>{1, 2}, {2});
  const std::string file = folder / "file.npy";
  write_npy(file, array);
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
  std::filesystem::create_symlink("file.npy", folder / "link.npy");
  const Array other(std::vector<float>{3, 4, 5}, {3});
  write_npy(folder / "link.npy", other);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.npy"));
  EXPECT_EQ(read_npy(file, float32).shape(), std::vector<std::int64_t>{3});
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms::owner_read | perms::owner_write);
  std::filesystem::remove_all(folder);
}

TEST(Npy, WritesToAPipeWithoutReplacingIt) {
  const auto path = std::filesystem::temp_directory_path() / "kiln-npy-fifo";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream in(path, std::ios::binary);
    got.assign(std::istreambuf_iterator<char>(in), {});
  });
  write_npy(path, Array(std::vector<float>{1, 2}, {2}));
  reader.join();
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_TRUE(got.starts_with("\x93NUMPY"));
  write_npy("/dev/null", Array(std::vector<float>{1}, {1}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  std::filesystem::remove(path);
}

TEST(Npy, NamesAFileThatCannotBeWritten) {
  expect_client_error([] { write_npy("/nowhere/a.npy", Array({1})); }, ErrorKind::InvalidArgument,
                      "OUTPUT_FILE", "/nowhere/a.npy cannot be written: No such file or directory");
}

}  // namespace
}  // namespace kiln::cli

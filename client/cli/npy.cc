// Reads and writes numpy's .npy files (NEP 1): a dictionary as text, then the numbers. Files in
// another byte order or in column-major order are converted, since Kiln has one layout.
//
//   {'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }  ->  float32[2, 3], row-major
#include "client/cli/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "client/cli/files.h"
#include "client/cpp/fail.h"

namespace kiln::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they stand");

constexpr std::string_view kMagic = "\x93NUMPY";
// A file that is no .npy but begins like one must not ask for gigabytes.
constexpr std::size_t kLongestHeader = 1 << 20;

template <typename... Args>
[[noreturn]] void refuse(const std::string& name, fmt::format_string<Args...> format,
                         Args&&... args) {
  client::detail::fail(ErrorKind::InvalidArgument, "NPY", "{}: {}", name,
                       fmt::format(format, std::forward<Args>(args)...));
}

struct Header {
  DType type = float32;
  bool swapped = false;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

std::string read_exactly(std::istream& in, std::size_t count, const std::string& name) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  if (static_cast<std::size_t>(in.gcount()) != count) refuse(name, "the file ends in its header");
  return bytes;
}

/// The text of the dictionary that stands before the numbers.
std::string read_header_text(std::istream& in, const std::string& name) {
  const std::string start = read_exactly(in, kMagic.size() + 2, name);
  if (!start.starts_with(kMagic)) refuse(name, "this is no .npy file");
  const int version = static_cast<unsigned char>(start[kMagic.size()]);
  if (version < 1 || version > 3) refuse(name, "format {} of .npy files is not known", version);
  const std::string length = read_exactly(in, version == 1 ? 2 : 4, name);
  std::size_t bytes = 0;
  for (std::size_t i = length.size(); i > 0; --i) {
    bytes = bytes << 8 | static_cast<unsigned char>(length[i - 1]);
  }
  if (bytes > kLongestHeader) refuse(name, "its header has {} bytes, which is too many", bytes);
  return read_exactly(in, bytes, name);
}

bool is_float8(DType type) { return type == float8_e4m3fn || type == float8_e5m2; }

std::optional<DType> type_of(char kind, int bytes, DType wanted) {
  switch (kind) {
    case 'b': return bytes == 1 ? std::optional(boolean) : std::nullopt;
    case 'f':
      // numpy writes float8_e5m2 so, and the others as void.
      if (bytes == 1) return is_float8(wanted) ? std::optional(wanted) : std::nullopt;
      return find_dtype(fmt::format("float{}", bytes * 8));
    case 'i': return find_dtype(fmt::format("int{}", bytes * 8));
    case 'u': return find_dtype(fmt::format("uint{}", bytes * 8));
    case 'V': {
      const bool small_float = wanted == bfloat16 || is_float8(wanted);
      if (small_float && size_of(wanted) == static_cast<std::size_t>(bytes)) return wanted;
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::vector<std::int64_t> parse_shape(const std::string& text, const std::string& name) {
  static const std::regex number(R"(\d+)");
  std::vector<std::int64_t> shape;
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    if (at->length() > 18) refuse(name, "dimension {} is too large", at->str());
    shape.push_back(std::stoll(at->str()));
  }
  return shape;
}

Header parse_header(const std::string& text, DType wanted, const std::string& name) {
  static const std::regex descr(R"('descr'\s*:\s*'([<>|=])([a-zA-Z])(\d{1,3})')");
  static const std::regex order(R"('fortran_order'\s*:\s*(True|False))");
  static const std::regex shape(R"('shape'\s*:\s*\(([0-9,\sL]*)\))");
  std::smatch found;
  Header header;
  if (!std::regex_search(text, found, order)) refuse(name, "its header lacks fortran_order");
  header.fortran = found[1] == "True";
  if (!std::regex_search(text, found, shape)) refuse(name, "its header lacks a shape");
  header.shape = parse_shape(found[1], name);
  if (!std::regex_search(text, found, descr)) {
    refuse(name, "it holds records or objects, not numbers of one type");
  }
  const std::optional<DType> type = type_of(found[2].str()[0], std::stoi(found[3]), wanted);
  if (!type) {
    refuse(name, "it holds numbers of type {}{}, which Kiln does not have", found[2].str(),
           found[3].str());
  }
  header.type = *type;
  header.swapped = found[1] == ">" && size_of(*type) > 1;
  return header;
}

void swap_bytes(std::span<std::byte> bytes, std::size_t each) {
  for (std::size_t at = 0; at < bytes.size(); at += each) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + each));
  }
}

/// From column-major to row-major order.
Array transposed(const Array& columns) {
  const Array rows(columns.shape(), columns.dtype(), SourceLocation::none());
  const std::size_t each = size_of(columns.dtype());
  const std::size_t rank = columns.shape().size();
  std::vector<std::int64_t> index(rank, 0);
  for (std::size_t to = 0; to < columns.size(); ++to) {
    std::size_t from = 0;
    for (std::size_t d = rank; d > 0; --d) {
      from = from * static_cast<std::size_t>(columns.shape()[d - 1]) +
             static_cast<std::size_t>(index[d - 1]);
    }
    std::memcpy(rows.bytes().data() + to * each, columns.bytes().data() + from * each, each);
    for (std::size_t d = rank; d > 0 && ++index[d - 1] == columns.shape()[d - 1]; --d) {
      index[d - 1] = 0;
    }
  }
  return rows;
}

std::string descr_of(DType type) {
  const std::size_t bytes = size_of(type);
  if (type == boolean) return "|b1";
  if (type == bfloat16) return "<V2";
  if (type == float8_e4m3fn || type == float8_e5m2) return "|V1";
  const std::string_view name = name_of(type);
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', name[0], bytes);
}

}  // namespace

Array read_npy(std::istream& in, const std::string& name, DType wanted) {
  const Header header = parse_header(read_header_text(in, name), wanted, name);
  const Array array(header.shape, header.type, SourceLocation::none());
  const std::span<std::byte> bytes = array.bytes();
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (static_cast<std::size_t>(in.gcount()) != bytes.size()) {
    refuse(name, "it holds {} bytes of numbers, but its shape needs {}", in.gcount(), bytes.size());
  }
  if (header.swapped) swap_bytes(bytes, size_of(header.type));
  return header.fortran && header.shape.size() > 1 ? transposed(array) : array;
}

Array read_npy(const std::string& path, DType wanted) {
  if (path == kStandard) {
    std::istringstream in(read_standard_input("an input"));
    return read_npy(in, "standard input", wanted);
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    client::detail::fail(ErrorKind::NotFound, "FILE",
                         "{} cannot be read: there is no such file, or no right to read it", path);
  }
  return read_npy(in, path, wanted);
}

void write_npy(std::ostream& out, const Array& array) {
  std::string shape;
  for (const std::int64_t size : array.shape())
    shape += fmt::format("{}, ", size);
  if (array.shape().size() > 1) shape.resize(shape.size() - 2);
  if (array.shape().size() == 1) shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   descr_of(array.dtype()), shape);
  const std::size_t before = kMagic.size() + 4;
  // The numbers begin at a multiple of 64, as the format asks.
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  out << kMagic << '\x01' << '\x00' << static_cast<char>(header.size() & 0xff)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(reinterpret_cast<const char*>(array.bytes().data()),
            static_cast<std::streamsize>(array.bytes().size()));
}

void write_npy(const std::string& path, const Array& array) {
  if (path == kStandard) {
    write_npy(std::cout, array);
    return;
  }
  write_through(path, [&](std::ostream& out) { write_npy(out, array); });
}

}  // namespace kiln::cli

// Files as texts and back, with the two sentences that every reader of files in the client uses.
// Bytes are taken as they are: line ends and encodings are the parser's to judge.
#include "client/cpp/text_file.h"

#include <fstream>
#include <iterator>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    fail(ErrorKind::NotFound, "FILE",
         "{} cannot be read: there is no such file, or no right to read it", path);
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    fail(ErrorKind::NotFound, "FILE",
         "{} cannot be written: there is no such folder, or no right to write there", path);
  }
}

}  // namespace detail
}  // namespace client
}  // namespace kiln

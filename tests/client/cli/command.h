#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct Finished {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// A folder of the test's own, in which `kiln` is run.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  /// A float32 array of these values.
  std::string write_array(const std::string& name, const std::vector<float>& values,
                          const std::vector<std::int64_t>& shape) const;

  /// Runs `kiln` with these arguments, without a terminal. Ends a program that hangs.
  Finished kiln(const std::vector<std::string>& arguments) const;

  /// For the programs that are run from now on.
  std::map<std::string, std::string> environment;
  std::string input;  // the file of this folder that is standard input; empty: there is none

 private:
  std::filesystem::path folder_;
};

}  // namespace kiln::test

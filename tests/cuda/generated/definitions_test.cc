// Definitions without a step, as the CUDA C that is made of them: what each comes to is compared
// with what the definition says, and kept as a table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/lower.h"
#include "runtime/core/error.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/golden.h"

namespace kiln::testing::definitions {
namespace {

namespace fs = std::filesystem;

/// A definition on its way: refused for a reason, or at a place of the HostGpu.
struct Entry {
  std::string name;
  language::Kernel kernel;
  std::vector<int64_t> sizes;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> expected;
  std::vector<double> errors;
  bool stops = false;  // at an index outside of a tensor
  std::string refusal;
  size_t place = 0;
  size_t launches = 0;
  size_t barriers = 0;
};

size_t count_of(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

void lower_to(HostGpu& gpu, Entry& entry) {
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  try {
    ir::Kernel loops = lower(entry.kernel, choose_schedule(entry.kernel, {}, target, {}), target,
                             {}, Layout::Compact, silent);
    entry.launches = ir::launched_statements(loops.body).size();
    entry.barriers = count_of(ir::print(loops), "barrier\n");
    entry.place = gpu.add(std::move(loops));
  } catch (const Error& error) {
    entry.refusal = fmt::format("{}: {}", error.reason(), error.message());
  }
}

std::vector<double> rounding_of(const std::vector<HostTensor>& outputs) {
  std::vector<double> errors;
  for (const HostTensor& tensor : outputs) {
    double largest = 1;
    for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
      const double value = std::abs(language::read_element(tensor, i).floating);
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    errors.push_back(is_float(tensor.type) ? largest * 1e-5 : 0);
  }
  return errors;
}

/// Empty, or what is wrong with what the threads compute or do.
std::string difference_on(const HostGpu& gpu, const Entry& entry) {
  try {
    const std::vector<HostTensor> outputs = gpu.run(entry.place, entry.sizes, entry.inputs);
    if (entry.stops) return "an index outside of a tensor is not noticed";
    return difference(outputs, entry.expected, entry.errors);
  } catch (const Error& error) {
    return entry.stops && error.reason() == "INDEX_OUT_OF_RANGE" ? "" : error.message();
  }
}

void evaluate(Entry& entry) {
  try {
    entry.expected =
        language::evaluate(entry.kernel.definition, entry.kernel.names, entry.sizes, entry.inputs);
    entry.errors = rounding_of(entry.expected);
  } catch (const Error& error) {
    if (error.reason() != "INDEX_OUT_OF_RANGE") throw;
    entry.stops = true;
  }
}

/// Small sizes of which none divides a tile, and such that windows lie inside of what they slide
/// over.
int64_t size_called(const std::string& name) {
  static const std::map<std::string, int64_t> kSizes = {
      {"r", 3},        {"s", 3},          {"stride", 2},     {"stride_h", 2}, {"stride_w", 1},
      {"dilation", 1}, {"dilation_h", 1}, {"dilation_w", 2}, {"groups", 2},   {"d", 2},
      {"window", 3},   {"c", 4},          {"m", 6},          {"h", 11},       {"w", 13},
      {"stride_h", 2}, {"u", 3},          {"v", 2},          {"q", 2},        {"pad_h", 1},
      {"pad_w", 1}};
  const auto known = kSizes.find(name);
  return known != kSizes.end() ? known->second : 37;
}

std::vector<Entry> entries_of_folder(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() == ".kiln") files.push_back(file.path());
  }
  std::ranges::sort(files);
  std::vector<Entry> entries;
  for (const fs::path& file : files) {
    std::ifstream stream(file);
    std::ostringstream text;
    text << stream.rdbuf();
    for (language::TextKernel& parsed :
         language::parse_text(text.str(), file.filename().string())) {
      Entry entry;
      entry.name = fmt::format("{}/{}", file.stem().string(), parsed.kernel.names.kernel);
      entry.kernel = std::move(parsed.kernel);
      for (const std::string& size : entry.kernel.names.variables)
        entry.sizes.push_back(size_called(size));
      Random random(7);
      entry.inputs = random_inputs(entry.kernel, entry.sizes, random);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::string row_of(const Entry& entry) {
  if (!entry.refusal.empty()) return fmt::format("{:<42} refused: {}", entry.name, entry.refusal);
  return fmt::format("{:<42} {:>8} {:>9}", entry.name, entry.launches, entry.barriers);
}

void expect_equal(const char* folder, const std::string& golden) {
  HostGpu gpu;
  std::vector<Entry> entries = entries_of_folder(folder);
  for (Entry& entry : entries)
    lower_to(gpu, entry);
  gpu.compile();
  std::string table = fmt::format("{:<42} {:>8} {:>9}\n", "definition", "launches", "barriers");
  for (Entry& entry : entries) {
    table += row_of(entry) + "\n";
    if (!entry.refusal.empty()) continue;
    evaluate(entry);
    EXPECT_EQ(difference_on(gpu, entry), "") << entry.name;
  }
  expect_golden(golden, table);
}

TEST(DefinitionsOnHost, OfOperatorsAreEqual) { expect_equal(KILN_OPERATORS, "cuda_operators.txt"); }

TEST(DefinitionsOnHost, OfTestKernelsAreEqual) {
  expect_equal(KILN_TEST_KERNELS, "cuda_kernels.txt");
}

std::string difference_on(const HostGpu& gpu, const Entry& entry, const FuzzCase& which) {
  try {
    return which.difference_of([&] { return gpu.run(entry.place, which.sizes, which.inputs); });
  } catch (const Error& error) {
    return error.message();
  }
}

/// For docs/generate_cuda_operators.py: each definition, and what became of it.
void keep(uint64_t seed, const std::string& definition, const std::string& outcome) {
  const char* const folder = std::getenv("KILN_KEEP_DEFINITIONS");
  if (folder == nullptr) return;
  const fs::path path = fs::path(folder) / std::to_string(seed);
  std::ofstream(fs::path(path).replace_extension(".kiln")) << definition;
  std::ofstream(fs::path(path).replace_extension(".txt")) << outcome;
}

/// What nobody scheduled is not refused.
TEST(DefinitionsOnHost, DrawnAtRandomAreEqual) {
  const uint64_t first = fuzz_seed(700'000);
  const int rounds = fuzz_rounds(200);
  constexpr int kAtOnce = 50;
  std::map<std::string, int> refusals;
  int compiled = 0;
  size_t launches = 0;
  for (int done = 0; done < rounds; done += kAtOnce) {
    HostGpu gpu;
    std::vector<FuzzCase> cases;
    std::vector<Entry> entries;
    for (int i = done; i < std::min(rounds, done + kAtOnce); ++i) {
      FuzzCase which = draw_case(first + static_cast<uint64_t>(i));
      Entry entry{.name = describe(first + static_cast<uint64_t>(i), which),
                  .kernel = which.kernel,
                  .sizes = which.sizes,
                  .inputs = which.inputs};
      lower_to(gpu, entry);
      if (!entry.refusal.empty()) ++refusals[entry.refusal];
      cases.push_back(std::move(which));
      entries.push_back(std::move(entry));
    }
    gpu.compile();
    for (size_t i = 0; i < entries.size(); ++i) {
      const uint64_t seed = first + static_cast<uint64_t>(done) + i;
      const std::string& refusal = entries[i].refusal;
      const std::string found =
          refusal.empty() ? difference_on(gpu, entries[i], cases[i]) : std::string();
      keep(seed, cases[i].drawn.text, !refusal.empty() ? refusal : found.empty() ? "equal" : found);
      if (!refusal.empty()) continue;
      ++compiled;
      launches += entries[i].launches;
      EXPECT_EQ(found, "") << entries[i].name;
    }
  }
  std::printf("  %d random definitions: %d compiled, %zu launches\n", rounds, compiled, launches);
  for (const auto& [refusal, count] : refusals)
    std::printf("  %4d refused: %s\n", count, refusal.c_str());
  EXPECT_EQ(compiled, rounds);
}

}  // namespace
}  // namespace kiln::testing::definitions

// Kernels of the tree and random ones with one thing changed, in the text or in the arguments of
// the call: types, ranks, strides, counts, values.
#include "tests/support/mutated_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/ranges.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "tests/support/mutate_kernel.h"
#include "tests/support/random_kernel.h"
#include "tests/support/random_schedule.h"

namespace kiln::testing {
namespace {

using language::Kernel;
using language::Scalar;
using language::Schedule;
using language::TextKernel;

constexpr std::string_view kShape = "argument shape";
constexpr std::string_view kRank = "argument rank";
constexpr std::string_view kType = "argument type";
constexpr std::string_view kStrides = "argument strides";
constexpr std::string_view kValues = "argument values";
constexpr std::string_view kCount = "argument count";
constexpr std::string_view kSize = "argument size";

/// Extents of kernel files that are too large to evaluate, and smaller ones that fit as well.
std::string shrunk(std::string text) {
  const std::pair<std::string_view, std::string_view> kSmaller[] = {
      {"[1, 3, 32, 32]", "[1, 3, 8, 8]"}, {"[1, 16, 30, 30]", "[1, 16, 6, 6]"},
      {"[32, 128, 64]", "[3, 20, 18]"},   {"[32, 64, 128]", "[3, 18, 20]"},
      {"[32, 128, 128]", "[3, 20, 20]"},  {"k < 64", "k < 18"},
  };
  for (const auto& [large, small] : kSmaller) {
    for (size_t at = text.find(large); at != std::string::npos; at = text.find(large))
      text.replace(at, large.size(), small);
  }
  return text;
}

TextKernel random_text(Random& random) {
  TextKernel text = language::parse_text(random_kernel(random).text, "random.kiln").at(0);
  return text;
}

/// A case has a schedule for one target: its own, or a random one, or none.
void choose_schedule_block(TextKernel& text, std::string_view target, Random& random) {
  Schedule schedule;
  for (const auto& [name, own] : text.schedules) {
    if (name == target) schedule = own;
  }
  const bool draw = schedule.steps.empty() ? random.chance(0.6) : random.chance(0.2);
  // A text has steps that the language takes; a mutation may change that.
  if (draw) schedule = accepted_steps(text.kernel, random_schedule(text.kernel.definition, random));
  text.schedules = {{std::string(target), schedule}};
}

/// Half of them are ordinary.
double odd_value(DType type, bool is_wild, Random& random) {
  if (!is_wild || random.chance(0.5)) return random.between(-3, 4);
  if (!is_float(type)) return std::ldexp(random.chance(0.5) ? 1 : -1, bits_of(type) - 1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return random.pick(
      std::vector<double>{std::nan(""), kInfinity, -kInfinity, -0.0, 1e30, -1e30, 1e-40, 0.1});
}

void fill(HostTensor& tensor, bool is_wild, Random& random) {
  // Integers are often indices; half of the tensors have such as are mostly inside.
  const bool small = is_int(tensor.type) && random.chance(0.6);
  for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
    const double value =
        small && !is_wild ? random.below(3) : odd_value(tensor.type, is_wild, random);
    language::write_element(
        tensor, i, language::convert(tensor.type, Scalar::of_float(DType::Float64, value)));
  }
}

int64_t odd_size(Random& random) {
  if (random.chance(0.03)) return 0;
  if (random.chance(0.4)) return random.between(1, 3);
  return random.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 17, 19});
}

/// Sizes that have no dimension of their own are given by name.
bool is_a_dimension(const Kernel& kernel, language::VariableId variable) {
  for (const language::TensorId parameter : kernel.definition.parameters) {
    for (const language::ExprId extent : kernel.definition.shape_of(parameter)) {
      const auto* use =
          std::get_if<language::VariableUse>(&kernel.definition.expressions[extent].node);
      const bool is_given = !kernel.definition.is_output(parameter);
      if (use != nullptr && is_given && use->variable == variable) return true;
    }
  }
  return false;
}

std::vector<int64_t> odd_strides(const std::vector<int64_t>& shape, Random& random) {
  std::vector<int64_t> strides = compact_strides(shape);
  switch (random.below(7)) {
    case 0:  // every second element
      for (int64_t& stride : strides)
        stride *= 2;
      return strides;
    case 1:  // the dimensions in another order
      random.shuffle(strides);
      return strides;
    case 2:  // backwards
      for (int64_t& stride : strides)
        stride = -stride;
      return strides;
    case 3:  // the same elements again and again
      for (int64_t& stride : strides)
        stride = random.chance(0.5) ? 0 : stride;
      return strides;
    case 4:  // rows apart
      for (size_t d = 0; d + 1 < strides.size(); ++d)
        strides[d] += random.between(1, 5);
      return strides;
    case 5:
      for (int64_t& stride : strides)
        stride = random.chance(0.3) ? int64_t{1} << random.between(30, 62) : stride;
      return strides;
    default: strides.push_back(1); return strides;
  }
}

void change_argument(DrawnCall& call, std::string_view mutation, Random& random) {
  if (call.slots.empty()) return;
  const auto which = static_cast<size_t>(random.below(static_cast<int>(call.slots.size())));
  ArgumentSlot& slot = call.slots[which];
  std::vector<int64_t>& shape = slot.layout.shape;
  if (mutation == kStrides) {
    slot.given = true;
    slot.layout.strides = odd_strides(shape, random);
  } else if (mutation == kType) {
    slot.given = true;
    slot.layout.type = *dtype_from_number(random.between(1, 15));
  } else if (mutation == kCount) {
    if (random.chance(0.5)) {
      call.slots.pop_back();
    } else {
      call.slots.push_back(slot);
    }
  } else if (mutation == kRank) {
    slot.given = true;
    if (random.chance(0.5) || shape.empty()) {
      shape.push_back(1);
    } else {
      shape.pop_back();
    }
  } else if (mutation == kShape && !shape.empty()) {
    slot.given = true;
    int64_t& extent = shape[static_cast<size_t>(random.below(static_cast<int>(shape.size())))];
    extent = random.pick(std::vector<int64_t>{extent + 1, extent - 1, 0, -1, 2 * extent, 1, 3,
                                              int64_t{1} << 40, INT64_MAX});
  }
}

}  // namespace

std::vector<std::string_view> argument_mutations() {
  return {kShape, kRank, kType, kStrides, kValues, kCount, kSize};
}

std::vector<std::string> kernel_texts(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".kiln") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::ostringstream whole;
    whole << std::ifstream(path).rdbuf();
    for (const TextKernel& kernel : language::parse_text(shrunk(whole.str()), path.string()))
      texts.push_back(language::print_text(kernel));
  }
  return texts;
}

MutatedText draw_mutated_text(const std::vector<std::string>& bases, uint64_t seed) {
  Random random(seed);
  MutatedText result;
  const bool is_cuda = random.chance(0.25);
  result.target = is_cuda ? TargetKind::Cuda : TargetKind::Llvm;
  TextKernel base = random.chance(0.4)
                        ? random_text(random)
                        : language::parse_text(random.pick(bases), "base.kiln").at(0);
  choose_schedule_block(base, is_cuda ? "cuda" : "cpu", random);
  result.text = language::print_text(base);
  if (random.chance(0.2)) {
    result.mutation = random.pick(argument_mutations());
    return result;
  }
  const auto kinds = mutation_kinds();
  // A kind may have no place in this kernel.
  for (int tries = 0; tries < 50; ++tries) {
    const MutationKind kind =
        kinds[static_cast<size_t>(random.below(static_cast<int>(kinds.size())))];
    const auto mutated = mutate_kernel(result.text, kind, random);
    if (!mutated) continue;
    result.text = *mutated;
    result.mutation = name_of(kind);
    return result;
  }
  result.mutation = kValues;
  return result;
}

DrawnCall draw_call(const Kernel& kernel, std::string_view mutation, Random& random) {
  const language::Definition& definition = kernel.definition;
  std::vector<int64_t> sizes;
  DrawnCall call;
  for (language::VariableId v = 0; v < definition.variables.size(); ++v) {
    sizes.push_back(odd_size(random));
    if (!is_a_dimension(kernel, v)) call.sizes[kernel.names.variables[v]] = sizes.back();
  }
  for (const language::TensorId parameter : definition.parameters) {
    HostTensor tensor{definition.type_of(parameter), {}, {}};
    for (const language::ExprId extent : definition.shape_of(parameter))
      tensor.shape.push_back(language::evaluate_size(definition, extent, sizes));
    double elements = 1;
    for (const int64_t extent : tensor.shape)
      elements *= static_cast<double>(std::max<int64_t>(extent, 0));
    const bool is_output = definition.is_output(parameter);
    call.slots.push_back({!is_output, {tensor.type, tensor.shape, {}}});
    const bool has_memory =
        elements < 1e6 &&
        std::ranges::none_of(tensor.shape, [](int64_t extent) { return extent < 0; });
    if (!is_output && has_memory) {
      tensor = zeros(tensor.type, tensor.shape);
      fill(tensor, mutation == kValues, random);
    }
    call.tensors.push_back(std::move(tensor));
  }
  if (mutation == kSize) {
    const std::string name = kernel.names.variables.empty() || random.chance(0.1)
                                 ? "other"
                                 : random.pick(kernel.names.variables);
    if (random.chance(0.2)) {
      call.sizes.erase(name);
    } else {
      call.sizes[name] = random.pick(std::vector<int64_t>{0, 1, 2, 3, 7, 8, -1, 1 << 20, INT64_MAX,
                                                          int64_t{1} << 33, INT64_MIN});
    }
  } else if (mutation.starts_with("argument")) {
    change_argument(call, mutation, random);
  }
  return call;
}

std::string describe(const DrawnCall& call) {
  std::string text;
  for (const ArgumentSlot& slot : call.slots) {
    text += fmt::format(" {}({}){}", slot.layout.type, fmt::join(slot.layout.shape, ", "),
                        slot.given ? "" : " not given");
    if (!slot.layout.strides.empty())
      text += fmt::format(" strides {}", fmt::join(slot.layout.strides, ", "));
  }
  for (const auto& [name, value] : call.sizes)
    text += fmt::format(" {}={}", name, value);
  return text;
}

}  // namespace kiln::testing

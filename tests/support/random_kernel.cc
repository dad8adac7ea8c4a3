// Draws kernels: one to five stages of the kinds of the tables below, by weight, most of them
// reading the one before.
#include "tests/support/random_kernel.h"

#include <span>

#include "tests/support/random_kernel_text.h"
#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

/// A kind of stage. `add` returns false, having done nothing, when `source` does not suit it.
struct StageKind {
  std::string_view name;
  int weight;
  bool (*add)(KernelWriter&, const DrawnTensor& source);
};

constexpr StageKind kStageKinds[] = {
    {"pointwise", 8, add_pointwise},
    {"cast", 3, add_cast},
    {"comparison", 3, add_comparison},
    {"division", 4, add_division},
    {"function", 8, add_function},
    {"bits", 2, add_bits},
    {"stencil", 5, add_stencil},
    {"padding", 5, add_padding},
    {"reduction", 6, add_row_reduction},
    {"product", 6, add_product},
    {"padded product", 5, add_padded_product},
    {"two results", 2, add_two_results},
    {"ragged reduction", 4, add_ragged_reduction},
    {"inner reduction", 7, add_inner_reduction},
    {"nested reduction", 2, add_nested_reduction},
    {"gather", 4, add_gather},
    {"scatter", 4, add_scatter},
    {"tensor product", 7, add_tensor_product},
    {"own reducer", 4, add_own_reducer},
    {"conditional reduction", 4, add_conditional_reduction},
};

/// A kind of scan, which brings its own inputs.
struct ScanKind {
  std::string_view name;
  int weight;
  void (*add)(KernelWriter&);
};

constexpr ScanKind kScanKinds[] = {
    {"scan", 1, add_plain_scan},
    {"running scan", 2, add_running_scan},
    {"scan of two stages", 1, add_scan_of_two_stages},
    {"scan of two states", 1, add_scan_of_two_states},
    {"scan reading across", 1, add_scan_reading_across},
    {"scan of products", 1, add_scan_of_products},
    {"scan of gathers", 1, add_scan_of_gathers},
};

template <typename Kind>
const Kind& pick(std::span<const Kind> kinds, Random& random) {
  int total = 0;
  for (const Kind& kind : kinds)
    total += kind.weight;
  int drawn = random.below(total);
  for (const Kind& kind : kinds) {
    drawn -= kind.weight;
    if (drawn < 0) return kind;
  }
  return kinds.back();
}

void add_stage(KernelWriter& writer, RandomKernel& result) {
  // Chains are what fusion and attachment are tested by.
  const bool chain = !writer.computed().empty() && writer.random.chance(0.7);
  const DrawnTensor source =
      chain ? writer.computed().back() : writer.random.pick(writer.tensors());
  const StageKind& kind = pick<StageKind>(kStageKinds, writer.random);
  const bool is_added = kind.add(writer, source);
  result.kinds.insert(is_added ? kind.name : "pointwise");
  if (!is_added) add_pointwise(writer, source);
}

void add_scan(KernelWriter& writer, RandomKernel& result) {
  const ScanKind& kind = pick<ScanKind>(kScanKinds, writer.random);
  kind.add(writer);
  result.kinds.insert(kind.name);
}

/// Of an input that has not the type of most tensors.
DType random_input_type(KernelWriter& writer) {
  const std::vector<DType> rare = {DType::Bool, DType::Float8E4M3FN, DType::Float8E5M2};
  return writer.random.chance(0.3) ? writer.random.pick(rare) : writer.random_type();
}

}  // namespace

RandomKernel random_kernel(Random& random) {
  RandomKernel result;
  KernelWriter writer(random);
  for (int i = random.between(1, 3); i > 0; --i) {
    std::vector<DrawnExtent> shape;
    for (int rank = random.between(1, 3); rank > 0; --rank)
      shape.push_back(random.pick(writer.extents()));
    writer.add_input(shape, random.chance(0.8) ? writer.type() : random_input_type(writer));
  }
  const bool has_scan = random.chance(0.25);
  if (has_scan) add_scan(writer, result);
  for (int i = random.between(has_scan ? 0 : 1, 4); i > 0; --i)
    add_stage(writer, result);
  if (random.chance(has_scan ? 0.3 : 0.05)) add_scan(writer, result);
  result.text = writer.finish();
  result.sizes = writer.sizes();
  result.inputs = writer.inputs();
  result.errors = writer.errors();
  result.is_exact = !writer.is_rough();
  result.may_stop = writer.may_stop();
  result.stages = writer.stages();
  return result;
}

std::string random_kernel_text(Random& random) { return random_kernel(random).text; }

std::vector<std::string_view> kernel_kinds() {
  std::vector<std::string_view> names;
  for (const StageKind& kind : kStageKinds)
    names.push_back(kind.name);
  for (const ScanKind& kind : kScanKinds)
    names.push_back(kind.name);
  return names;
}

}  // namespace kiln::testing

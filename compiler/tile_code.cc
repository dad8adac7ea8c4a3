// The choice between the two generators of code for NVIDIA's GPUs. CUDA C does everything; Tile IR
// is for attentions, whose scores CUDA C stores, and for products on tensor cores that work
// asynchronously, for which only NVIDIA's compiler of tiles makes code.
#include "compiler/tile_code.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/codegen/cubin.h"
#include "compiler/codegen/kernel_json.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/predict/predict_gpu.h"
#include "compiler/predict/predict_tiles.h"
#include "compiler/tile/attention.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/contraction_form.h"
#include "compiler/tile/form_error.h"
#include "compiler/tile/text.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln {
namespace {

using tile::refuse_form;

/// The tensor cores' sums of integers stop at the largest int32, where those of the definition
/// wrap.
void require_sums_in_range(const tile::Program& program) {
  const auto is_loop = [](const tile::Instruction& each) {
    return std::holds_alternative<tile::For>(each.what);
  };
  const auto loop = std::ranges::find_if(program.body, is_loop);
  KILN_CHECK(loop != program.body.end());
  if (is_float(program.values[loop->results[0]].element)) return;
  double terms = 1;
  for (const tile::AxisId axis : std::get<tile::For>(loop->what).axes) {
    const tile::Extent& sum = program.axes[axis].extent;
    const int64_t count = sum.size >= 0 ? std::numeric_limits<int64_t>::max() : sum.constant;
    terms *= static_cast<double>(count);
  }
  constexpr int64_t kMostProduct = 255 * 255;
  constexpr int64_t kMostTerms = std::numeric_limits<int32_t>::max() / kMostProduct;
  if (terms > kMostTerms)
    refuse_form("its sums in int32 may have more than {} terms, and could be too large",
                kMostTerms);
}

/// "convolution of 16-bit floats"
std::string kind_of(const tile::Program& program) {
  std::string_view kind = "product";
  for (const tile::Instruction& each : program.body) {
    const auto* loop = std::get_if<tile::For>(&each.what);
    if (loop == nullptr) continue;
    for (const tile::Instruction& inner : loop->body) {
      if (std::holds_alternative<tile::Window>(inner.what)) kind = "convolution";
      const auto* mma = std::get_if<tile::Mma>(&inner.what);
      if (mma == nullptr) continue;
      if (mma->in_tf32) return fmt::format("{} in tf32", kind);
      const DType type = program.values[inner.operands[0]].element;
      return fmt::format("{} of {}-bit {}", kind, 8 * size_of(type),
                         is_float(type) ? "floats" : "integers");
    }
  }
  KILN_CHECK(false);
}

/// Whether what the one product of a loop multiplies is computed on its way.
bool computes_factors(const tile::Program& program) {
  for (const tile::Instruction& each : program.body) {
    const auto* loop = std::get_if<tile::For>(&each.what);
    if (loop == nullptr) continue;
    const auto is_product = [](const tile::Instruction& inner) {
      return std::holds_alternative<tile::Mma>(inner.what);
    };
    const auto is_computed = [](const tile::Instruction& inner) {
      return std::holds_alternative<tile::Apply>(inner.what) ||
             std::holds_alternative<tile::Cast>(inner.what);
    };
    if (std::ranges::count_if(loop->body, is_product) == 1 &&
        std::ranges::any_of(loop->body, is_computed))
      return true;
  }
  return false;
}

/// A kernel on tiles, by how many warps a block of its last program is run, and what it is.
struct Tiled {
  tile::Sequence sequence;
  int warps = 0;
  std::string what;
  int64_t most_spilled = 0;  // bytes of a thread that are no worse than CUDA C
};

std::vector<Tiled> tiled_attention(const language::Kernel& kernel, const std::string& arch) {
  constexpr int64_t kMostSpilled = 256;  // CUDA C moves each score through memory four times
  std::vector<Tiled> tiled;
  for (const tile::AttentionShape& shape : tile::attention_shapes(kernel, arch)) {
    tiled.push_back({tile::alone(tile::attention(kernel, shape)), shape.warps,
                     fmt::format("attention, whose scores are not stored: {} queries a block, {} "
                                 "keys at once",
                                 shape.queries, shape.keys),
                     kMostSpilled});
  }
  return tiled;
}

std::string_view text_of_copies(const tile::ContractionForm& form) {
  if (form.copies().empty()) return "";
  return form.copies().size() == 1
             ? ", from a copy of one factor whose rows tensor cores can read"
             : ", from copies of both factors whose rows tensor cores can read";
}

/// Of a guess at what the call brings.
double predicted_seconds(const tile::Sequence& sequence, const std::string& arch) {
  constexpr int64_t kGuess = 4096;
  const std::vector<int64_t> sizes(sequence.last().sizes.size(), kGuess);
  return predict::predict_tiles(sequence, sizes, autoschedule::gpu_machine(arch)).seconds();
}

/// Its best blocks first.
std::vector<Tiled> tiled_form(const tile::ContractionForm& form) {
  constexpr size_t kMostTried = 2;
  std::vector<Tiled> tiled;
  for (const tile::BlockShape& shape : form.shapes()) {
    if (tiled.size() == kMostTried) break;
    tile::Sequence sequence = form.sequence(shape);
    std::string what =
        fmt::format("{}, in blocks of {} x {} with {} steps at once{}", kind_of(sequence.last()),
                    shape.rows, shape.columns, shape.steps, text_of_copies(form));
    tiled.push_back({std::move(sequence), shape.warps, std::move(what)});
  }
  return tiled;
}

/// In the form that is predicted to take less time, of those that rows are copied of without
/// threads.
std::vector<Tiled> tiled_product(const language::Kernel& kernel, const std::string& arch) {
  if (std::ranges::count(tile::product_architectures(), arch) == 0)
    refuse_form("Tile IR is used for {}, not for {}",
                fmt::join(tile::product_architectures(), ", "), arch);
  std::vector<Tiled> chosen;
  double least = std::numeric_limits<double>::infinity();
  std::string why;
  for (const tile::ContractionForm& form : tile::contraction_forms(kernel, arch)) {
    try {
      std::vector<Tiled> tiled = tiled_form(form);
      why = tile::unaligned_rows(tiled[0].sequence.last());
      if (!why.empty()) continue;
      const double seconds = predicted_seconds(tiled[0].sequence, arch);
      if (!chosen.empty() && seconds >= least) continue;
      chosen = std::move(tiled);
      least = seconds;
    } catch (const Error& error) {
      if (error.reason() != "TILE_FORM") throw;
      why = error.message();
    }
  }
  if (chosen.empty()) refuse_form("{}", why);
  for (const Tiled& each : chosen)
    require_sums_in_range(each.sequence.last());
  return chosen;
}

std::vector<Tiled> candidates_of(const language::Kernel& kernel, const std::string& arch) {
  return tile::is_attention(kernel) ? tiled_attention(kernel, arch) : tiled_product(kernel, arch);
}

struct Assembled {
  std::string cubin;
  std::vector<codegen::CubinKernel> kernels;  // in the order of launches
  int64_t spilled = 0;                        // bytes of a thread, as far as they matter
};

/// A few bytes that are stored and loaded once beside the main loop take no time.
int64_t spilled_by(const codegen::CubinKernel& kernel, const std::string& arch) {
  constexpr int64_t kFewBytes = 32;
  const bool is_in_loop = codegen::main_loop_of(kernel.code, arch).spills > 0;
  return kernel.stack_bytes <= kFewBytes && !is_in_loop ? 0 : kernel.stack_bytes;
}

Assembled assembled(const Tiled& tiled, const codegen::TileAssembler& assembler,
                    const std::string& arch) {
  const tile::Sequence& sequence = tiled.sequence;
  if (const std::string why = tile::unaligned_rows(sequence.last()); !why.empty())
    refuse_form("{}", why);
  Assembled result;
  result.cubin =
      assembler.assemble(tile::bytecode(sequence, {.arch = arch, .warps = tiled.warps}), arch);
  const std::vector<codegen::CubinKernel> kernels = codegen::kernels_of_cubin(result.cubin);
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const auto kernel =
        std::ranges::find(kernels, tile::entry_name(i), &codegen::CubinKernel::name);
    if (kernel == kernels.end()) refuse_form("the code made of tiles is none");
    result.kernels.push_back(*kernel);
  }
  result.spilled = spilled_by(result.kernels.back(), arch);
  return result;
}

/// Throws Unsupported or Unavailable with the reason why it stays with CUDA C.
nlohmann::json add_code(const language::Kernel& kernel, const ir::Kernel& loops,
                        const Target& target, const CompileOptions& options, Artifact& artifact) {
  if (!options.untouched) refuse_form("its schedule is given");
  if (options.strict) refuse_form("strict keeps its sums in the order of the definition");
  const std::vector<Tiled> candidates = candidates_of(kernel, artifact.arch);
  if (is_faster_in_cuda_c(candidates[0].sequence, loops, target.arch))
    refuse_form("its CUDA C is predicted to take less time than code on tiles");
  std::optional<Assembled> best;
  const Tiled* chosen = nullptr;
  for (const Tiled& tiled : candidates) {
    Assembled code = assembled(tiled, *options.assembler, artifact.arch);
    if (best && best->spilled <= code.spilled) continue;
    best = std::move(code);
    chosen = &tiled;
    if (best->spilled == 0) break;
  }
  KILN_CHECK(chosen != nullptr);
  if (best->spilled > chosen->most_spilled)
    refuse_form("the code made of tiles spills {} bytes", best->spilled);
  const SizeExpr one = SizeExpr::constant(1);
  const tile::Sequence& sequence = chosen->sequence;
  Variant& variant = artifact.variants[0];
  for (size_t i = 0; i < sequence.steps.size(); ++i)
    variant.tile_launches.push_back({tile::entry_name(i),
                                     {tile::block_count(sequence.steps[i].program), one, one},
                                     {one, one, one}});
  variant.tile_workspace_bytes = tile::workspace_bytes(sequence);
  artifact.tile_code = std::move(best->cubin);
  nlohmann::json kernels = nlohmann::json::array();
  for (const codegen::CubinKernel& each : best->kernels)
    kernels.push_back(codegen::kernel_json(each, artifact.arch));
  return {{"kernels", std::move(kernels)},
          {"why", fmt::format("an untouched {}; a driver older than CUDA 13 runs the CUDA C",
                              chosen->what)}};
}

}  // namespace

std::string tile_text(const language::Kernel& kernel) {
  const std::string first_arch(tile::product_architectures()[0]);
  try {
    if (tile::is_attention(kernel))
      return tile::print(tiled_attention(kernel, first_arch)[0].sequence);
    return tile::print(tiled_product(kernel, first_arch)[0].sequence);
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    refuse_form("{} has no form on tiles: {}", kernel.names.kernel, error.message());
  }
}

std::vector<TileCandidate> tile_candidates(const language::Kernel& kernel, const Target& target,
                                           const CompileOptions& options) {
  if (!options.untouched || options.strict) return {};
  std::vector<TileCandidate> found;
  try {
    for (Tiled& tiled : candidates_of(kernel, std::string(without_figures(target.arch))))
      if (tile::unaligned_rows(tiled.sequence.last()).empty())
        found.push_back({std::move(tiled.sequence), std::move(tiled.what)});
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
  }
  return found;
}

bool is_faster_in_cuda_c(const tile::Sequence& sequence, const ir::Kernel& loops,
                         std::string_view arch) {
  // What both predictions leave out may be as much.
  const bool is_plain = sequence.steps.size() == 1 && !computes_factors(sequence.last());
  const double clearly = is_plain ? 1.5 : 1;
  if (!sequence.last().sizes.empty()) return false;
  const autoschedule::GpuMachine machine = autoschedule::gpu_machine(arch);
  const double on_tiles = predict::predict_tiles(sequence, {}, machine).seconds();
  const predict::Prediction cuda_c =
      predict::predict_gpu(loops, {}, machine, ir::gpu_arch(std::string(arch)));
  return clearly * cuda_c.seconds() < on_tiles;
}

void add_tile_code(const language::Kernel& kernel, const ir::Kernel& loops, const Target& target,
                   const CompileOptions& options, Artifact& artifact) {
  if (options.assembler == nullptr) return;
  nlohmann::json report = nlohmann::json::parse(artifact.report);
  nlohmann::json& generator = report["generator"];
  try {
    nlohmann::json made = add_code(kernel, loops, target, options, artifact);
    for (nlohmann::json& each : made["kernels"])
      report["kernels"].push_back(std::move(each));
    report["launches"] = artifact.variants[0].tile_launches.size();
    generator = {{"name", "Tile IR"}, {"why", std::move(made["why"])}};
  } catch (const Error& error) {
    const std::string& reason = error.reason();
    if (reason != "TILE_FORM" && reason != "TILEIRAS" && reason != "TILEIRAS_NOW") throw;
    generator = {{"name", "CUDA C"}, {"why", error.message()}};
  }
  artifact.report = report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<tile::Sequence> tile_sequence_of(const language::Kernel& kernel,
                                               const Artifact& artifact) {
  if (artifact.tile_code.empty()) return std::nullopt;
  const SizeExpr blocks = artifact.variants[0].tile_launches.back().grid[0];
  for (Tiled& candidate : candidates_of(kernel, artifact.arch))
    if (tile::block_count(candidate.sequence.last()) == blocks)
      return std::move(candidate.sequence);
  return std::nullopt;
}

}  // namespace kiln

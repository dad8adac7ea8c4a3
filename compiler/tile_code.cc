// The choice between the two generators of code for NVIDIA's GPUs. CUDA C does everything; Tile IR
// is for attentions and products on tensor cores that work asynchronously, for which only NVIDIA's
// compiler of tiles makes code.
#include "compiler/tile_code.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/kernel_json.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/form_error.h"
#include "compiler/tile/text.h"
#include "compiler/tile_gain.h"
#include "compiler/tile_ways.h"
#include "runtime/core/arguments.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln {
namespace {

using tile::refuse_form;

/// The code of a way, of which one of its blocks is taken.
struct Part {
  TileWay way;
  SizeExpr where;                                  // rows are as it wants them, and it pays
  size_t first_entry = 0;                          // of the entries of all parts
  size_t taken = 0;                                // of way.tiled
  std::vector<std::string> cubins = {};            // in the order of launches
  std::vector<codegen::CubinKernel> kernels = {};  // of these
  int64_t spilled = 0;                             // bytes of a thread, as far as they matter

  const Tiled& tiled() const { return way.tiled[taken]; }
  bool spills_too_much() const { return spilled > tiled().most_spilled; }
};

/// A few bytes that are stored and loaded once beside the main loop take no time.
int64_t spilled_by(const codegen::CubinKernel& kernel, const std::string& arch) {
  constexpr int64_t kFewBytes = 32;
  const bool is_in_loop = codegen::main_loop_of(kernel.code, arch).spills > 0;
  return kernel.stack_bytes <= kFewBytes && !is_in_loop ? 0 : kernel.stack_bytes;
}

/// The code of each, of which every program is a module of its own, and what is said of it.
void assemble(std::span<Part> parts, const codegen::TileAssembler& assembler,
              const std::string& arch) {
  std::vector<std::string> modules;
  for (const Part& part : parts) {
    const Tiled& tiled = part.tiled();
    for (size_t step = 0; step < tiled.sequence.steps.size(); ++step)
      modules.push_back(tile::bytecode(
          tiled.sequence,
          {.arch = arch, .warps = tiled.warps, .number = part.first_entry + step, .step = step}));
  }
  std::vector<std::string> cubins = assembler.assemble(modules, arch);
  auto cubin = cubins.begin();
  for (Part& part : parts) {
    part.cubins.clear();
    part.kernels.clear();
    for (size_t step = 0; step < part.tiled().sequence.steps.size(); ++step) {
      const std::string name = tile::entry_name(part.first_entry + step);
      const std::vector<codegen::CubinKernel> kernels = codegen::kernels_of_cubin(*cubin);
      const auto kernel = std::ranges::find(kernels, name, &codegen::CubinKernel::name);
      if (kernel == kernels.end()) refuse_form("the code made of tiles is none");
      part.kernels.push_back(*kernel);
      part.cubins.push_back(std::move(*cubin++));
    }
    part.spilled = spilled_by(part.kernels.back(), arch);
  }
}

/// With the blocks of each part that spill the least, those that are best of these.
void make_best_code(std::vector<Part>& parts, const codegen::TileAssembler& assembler,
                    const std::string& arch) {
  assemble(parts, assembler, arch);
  for (Part& part : parts) {
    for (size_t next = 1; part.spilled > 0 && next < part.way.tiled.size(); ++next) {
      Part other = part;
      other.taken = next;
      assemble({&other, 1}, assembler, arch);
      if (other.spilled < part.spilled) part = std::move(other);
    }
  }
}

/// The ways that are predicted to pay, each with the calls that it is for.
std::vector<Part> parts_of(const language::Kernel& kernel, const ir::Kernel& loops,
                           const Target& target, const std::string& arch,
                           const CompileOptions& options) {
  const SizeExpr never = SizeExpr::constant(0);
  std::vector<Part> parts;
  size_t entries = 0;
  for (TileWay& way : tile_ways(kernel, arch, options)) {
    const SizeExpr pays =
        options.block ? SizeExpr::constant(1) : where_tiles_pay(way.sequence(), loops, target.arch);
    if (pays == never) continue;
    SizeExpr where = SizeExpr::both(tile::has_even_rows(way.sequence()), pays);
    const size_t count = way.sequence().steps.size();
    parts.push_back({std::move(way), std::move(where), entries});
    entries += count;
  }
  if (parts.empty()) refuse_form("its CUDA C is predicted to take less time than code on tiles");
  return parts;
}

/// Gives the launches of all parts to the artifact. Those that are for some calls only have a
/// variant of their own before that of the other calls, with the same CUDA C.
void add_launches(std::vector<Part>& parts, Artifact& artifact) {
  const SizeExpr one = SizeExpr::constant(1);
  const Variant all = artifact.variants[0];
  size_t place = 0;
  for (Part& part : parts) {
    const SizeExpr condition =
        SizeExpr::both(tile::has_short_sizes(part.tiled().sequence), part.where);
    if (condition != one) {
      const auto at = artifact.variants.begin() + static_cast<std::ptrdiff_t>(place);
      artifact.variants.insert(at, all)->condition = SizeExpr::both(all.condition, condition);
    }
    Variant& variant = artifact.variants[place++];
    variant.tile_code = std::move(part.cubins);
    size_t number = part.first_entry;
    for (const tile::Sequence::Step& step : part.tiled().sequence.steps)
      variant.tile_launches.push_back(
          {tile::entry_name(number++), {tile::block_count(step), one, one}, {one, one, one}});
    variant.tile_workspace_bytes = tile::workspace_bytes(part.tiled().sequence);
  }
}

/// "an untouched product .., where floormod(n, 8) == 0; else a product .."
std::string why_of(const std::vector<Part>& parts, std::span<const std::string> sizes,
                   bool is_asked_for) {
  const std::string_view first = is_asked_for ? "the schedule asks for a" : "an untouched";
  std::string why;
  for (const Part& part : parts) {
    why += fmt::format("{} {}", why.empty() ? first : "; else a", part.tiled().what);
    if (part.where != SizeExpr::constant(1))
      why += fmt::format(", where {}", part.where.describe(sizes));
  }
  const bool are_all = parts.back().where == SizeExpr::constant(1);
  return why + (are_all ? "; a driver older than CUDA 13 runs the CUDA C"
                        : "; other calls, and a driver older than CUDA 13, run the CUDA C");
}

/// Those of a call of these sizes on tensors without gaps.
std::vector<int64_t> compact_scalars(const Artifact& artifact, std::span<const int64_t> sizes) {
  std::vector<int64_t> scalars(sizes.begin(), sizes.end());
  for (const Parameter& parameter : artifact.parameters) {
    std::vector<int64_t> shape;
    for (const SizeExpr& extent : parameter.shape)
      shape.push_back(extent.evaluate(sizes));
    const std::vector<int64_t> strides = compact_strides(shape);
    scalars.insert(scalars.end(), strides.begin(), strides.end());
  }
  return scalars;
}

/// Throws Unsupported or Unavailable with the reason why it stays with CUDA C.
nlohmann::json add_code(const language::Kernel& kernel, const ir::Kernel& loops,
                        const Target& target, const CompileOptions& options, Artifact& artifact) {
  if (!options.untouched && !options.block) refuse_form("its schedule is given");
  if (options.strict) refuse_form("strict keeps its sums in the order of the definition");
  std::vector<Part> parts = parts_of(kernel, loops, target, artifact.arch, options);
  make_best_code(parts, *options.assembler, artifact.arch);
  const int64_t spilled = parts[0].spilled;
  std::erase_if(parts, &Part::spills_too_much);
  if (parts.empty()) refuse_form("the code made of tiles spills {} bytes", spilled);
  add_launches(parts, artifact);
  nlohmann::json kernels = nlohmann::json::array();
  for (const Part& part : parts)
    for (const codegen::CubinKernel& each : part.kernels)
      kernels.push_back(codegen::kernel_json(each, artifact.arch));
  return {{"kernels", std::move(kernels)},
          {"why", why_of(parts, kernel.names.variables, options.block.has_value())}};
}

}  // namespace

std::string tile_text(const language::Kernel& kernel, const CompileOptions& options) {
  try {
    std::string text;
    const std::string arch(tile::product_architectures()[0]);
    for (const TileWay& way : tile_ways(kernel, arch, options)) {
      const SizeExpr where = tile::has_even_rows(way.sequence());
      if (where != SizeExpr::constant(1))
        text += fmt::format("// where {}\n", where.describe(kernel.names.variables));
      if (where == SizeExpr::constant(1) && !text.empty()) text += "// else\n";
      text += tile::print(way.sequence());
    }
    return text;
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    refuse_form("{} has no form on tiles: {}", kernel.names.kernel, error.message());
  }
}

std::vector<TileCandidate> tile_candidates(const language::Kernel& kernel, const Target& target,
                                           const CompileOptions& options,
                                           std::span<const int64_t> sizes) {
  if (!options.untouched || options.strict) return {};
  std::vector<TileCandidate> found;
  try {
    for (TileWay& way : tile_ways(kernel, std::string(without_figures(target.arch)), options)) {
      if (tile::condition_of(way.sequence()).evaluate(sizes) == 0) continue;
      for (Tiled& tiled : way.tiled)
        found.push_back({std::move(tiled.sequence), std::move(tiled.what)});
      break;  // calls that two are for take the first
    }
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
  }
  return found;
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

std::optional<TileCode> tile_code_of(const language::Kernel& kernel, const Artifact& artifact,
                                     std::span<const int64_t> sizes,
                                     const CompileOptions& options) {
  const std::vector<int64_t> scalars = compact_scalars(artifact, sizes);
  const auto taken = std::ranges::find_if(artifact.variants, [&](const Variant& variant) {
    return variant.condition.evaluate(scalars) != 0;
  });
  if (taken == artifact.variants.end() || taken->tile_launches.empty()) return std::nullopt;
  const SizeExpr& blocks = taken->tile_launches.back().grid[0];
  for (TileWay& way : tile_ways(kernel, artifact.arch, options)) {
    if (way.sequence().steps.size() != taken->tile_launches.size()) continue;
    for (Tiled& tiled : way.tiled)
      if (tile::block_count(tiled.sequence.last()) == blocks)
        return TileCode{std::move(tiled.sequence), taken->tile_launches.back().entry,
                        taken->tile_code.back()};
  }
  return std::nullopt;
}

}  // namespace kiln

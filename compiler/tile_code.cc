// The choice between the two generators of code for NVIDIA's GPUs. CUDA C does everything; Tile IR
// is for products on tensor cores that work asynchronously, for which only NVIDIA's compiler of
// tiles makes code: of an H100 (wgmma) and a B200 (tcgen05). On others, sm_120 among them, the CUDA
// C has more matrix instructions in its main loop.
#include "compiler/tile_code.h"

#include <algorithm>
#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/kernel_json.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/text.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr std::array<std::string_view, 4> kArchitectures = {"sm_90", "sm_100", "sm_103", "sm_110"};
constexpr const char* kEntry = "kiln_tile_0";

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unsupported, "TILE_FORM", format, std::forward<Args>(args)...);
}

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
    refuse("its sums in int32 may have more than {} terms, and could be too large", kMostTerms);
}

/// "convolution of 16-bit floats"
std::string kind_of(const tile::Program& program) {
  std::string_view kind = "product";
  for (const tile::Instruction& each : program.body) {
    const auto* loop = std::get_if<tile::For>(&each.what);
    if (loop == nullptr) continue;
    for (const tile::Instruction& inner : loop->body) {
      if (std::holds_alternative<tile::Window>(inner.what)) kind = "convolution";
      if (!std::holds_alternative<tile::Mma>(inner.what)) continue;
      const DType type = program.values[inner.operands[0]].element;
      if (type == DType::Float32) return fmt::format("{} in tf32", kind);
      return fmt::format("{} of {}-bit {}", kind, 8 * size_of(type),
                         is_float(type) ? "floats" : "integers");
    }
  }
  KILN_CHECK(false);
}

/// Throws Unsupported or Unavailable with the reason why it stays with CUDA C.
nlohmann::json add_code(const language::Kernel& kernel, const Target& target,
                        const CompileOptions& options, Artifact& artifact) {
  if (!options.untouched) refuse("its schedule is given");
  if (options.strict) refuse("strict keeps its sums in the order of the definition");
  if (std::ranges::count(kArchitectures, artifact.arch) == 0)
    refuse("Tile IR is used for {}, not for {}", fmt::join(kArchitectures, ", "), artifact.arch);
  const tile::BlockShape shape = tile::block_shape(kernel);
  const tile::Program program = tile::contraction(kernel, shape);
  if (const std::string why = tile::unaligned_rows(program); !why.empty()) refuse("{}", why);
  require_sums_in_range(program);
  const std::string bytecode =
      tile::bytecode(program, kEntry, {.arch = artifact.arch, .warps = shape.warps});
  std::string cubin = options.assembler->assemble(bytecode, artifact.arch);
  const std::vector<codegen::CubinKernel> kernels = codegen::kernels_of_cubin(cubin);
  if (kernels.size() != 1 || kernels[0].name != kEntry) refuse("the code made of tiles is none");
  if (kernels[0].stack_bytes > 0)
    refuse("the code made of tiles spills {} bytes", kernels[0].stack_bytes);
  const SizeExpr one = SizeExpr::constant(1);
  artifact.variants[0].tile_launches = {
      {kEntry, {tile::block_count(program), one, one}, {one, one, one}}};
  nlohmann::json written = codegen::kernel_json(kernels[0], artifact.arch);
  artifact.tile_code = std::move(cubin);
  return {{"kernel", std::move(written)},
          {"why", fmt::format("an untouched {}, in blocks of {} x {} with {} steps at once; "
                              "a driver older than CUDA 13 runs the CUDA C",
                              kind_of(program), shape.rows, shape.columns, shape.steps)}};
}

}  // namespace

std::string tile_text(const language::Kernel& kernel) {
  try {
    return tile::print(tile::contraction(kernel, tile::block_shape(kernel)));
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    refuse("{} has no form on tiles: {}", kernel.names.kernel, error.message());
  }
}

void add_tile_code(const language::Kernel& kernel, const Target& target,
                   const CompileOptions& options, Artifact& artifact) {
  if (options.assembler == nullptr) return;
  nlohmann::json report = nlohmann::json::parse(artifact.report);
  nlohmann::json& generator = report["generator"];
  try {
    nlohmann::json made = add_code(kernel, target, options, artifact);
    report["kernels"].push_back(std::move(made["kernel"]));
    generator = {{"name", "Tile IR"}, {"why", std::move(made["why"])}};
  } catch (const Error& error) {
    const std::string& reason = error.reason();
    if (reason != "TILE_FORM" && reason != "TILEIRAS" && reason != "TILEIRAS_NOW") throw;
    generator = {{"name", "CUDA C"}, {"why", error.message()}};
  }
  artifact.report = report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace kiln

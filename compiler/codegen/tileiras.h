#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/run_program.h"

namespace kiln::codegen {

/// Makes machine code of CUDA Tile IR's bytecode.
class TileAssembler {
 public:
  virtual ~TileAssembler() = default;

  /// The cubins of modules for an architecture ("sm_90"), in their order, made at the same time.
  /// Throws Unavailable with one sentence where one is not to be had, whatever the reason:
  /// TILEIRAS, or TILEIRAS_NOW where another time may be different, as of a machine that has too
  /// much to do.
  virtual std::vector<std::string> assemble(std::span<const std::string> modules,
                                            std::string_view arch) const = 0;

  /// The program that does it. Throws as assemble() does where it is known beforehand that there is
  /// none.
  virtual std::string program() const = 0;
};

/// NVIDIA's assembler, a program of its own: the one that KILN_TILEIRAS names, or else that of the
/// toolkit or of the wheel nvidia-cuda-tileiras.
///
/// It finds its libraries by CUDA_HOME, where another toolkit may be; so it is run with its own
/// folder there, and with a folder of its own for temporary files.
class Tileiras : public TileAssembler {
 public:
  /// A kernel takes it up to 5 s of a processor, which on a host with much to do are many more by
  /// the clock; a compile may take two minutes.
  static constexpr RunLimits kLimits = {.processor = std::chrono::seconds(10),
                                        .clock = std::chrono::seconds(60)};

  explicit Tileiras(const RunLimits& limits = kLimits) : limits_(limits) {}
  std::vector<std::string> assemble(std::span<const std::string> modules,
                                    std::string_view arch) const override;
  std::string program() const override;

 private:
  const RunLimits limits_;
};

/// Its file. Throws Unavailable TILEIRAS with where was looked and what to do.
std::string find_tileiras();

}  // namespace kiln::codegen

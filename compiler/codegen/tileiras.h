#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace kiln::codegen {

/// Makes machine code of CUDA Tile IR's bytecode.
class TileAssembler {
 public:
  virtual ~TileAssembler() = default;

  /// The cubin for an architecture ("sm_90"). Throws Unavailable with one sentence where there is
  /// none to be had, whatever the reason: TILEIRAS, or TILEIRAS_NOW where another time may be
  /// different, as of a machine that has too much to do.
  virtual std::string assemble(const std::string& bytecode, std::string_view arch) const = 0;

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
  explicit Tileiras(std::chrono::milliseconds limit = std::chrono::seconds(10)) : limit_(limit) {}
  std::string assemble(const std::string& bytecode, std::string_view arch) const override;
  std::string program() const override;

 private:
  const std::chrono::milliseconds limit_;
};

/// Its file. Throws Unavailable TILEIRAS with where was looked and what to do.
std::string find_tileiras();

}  // namespace kiln::codegen

#pragma once

#include <string_view>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/block_shape.h"
#include "compiler/tile/factor_copies.h"
#include "compiler/tile/sequence.h"
#include "compiler/tile/stored_stage.h"

namespace kiln::tile {

/// A way to do a contraction on tiles: its factors are read as they lie, from copies, or, where
/// they are computed, on their way or as programs before have stored them; and for all calls, or
/// for those whose rows begin at multiples of 16 bytes.
class ContractionForm {
 public:
  /// `parameters` are the kernel's, with the multiples at which their rows begin.
  ContractionForm(std::vector<Parameter> parameters, language::Kernel read,
                  std::vector<StoredStage> stored, std::vector<FactorCopy> copies);

  /// Shapes for its blocks, as block_shapes() has them. Throws as it does.
  std::vector<BlockShape> shapes(ByteFloatSums sums = ByteFloatSums::InParts) const {
    return block_shapes(read_, sums);
  }
  /// The product, behind the programs that compute and copy its factors. Throws as contraction()
  /// does.
  Sequence sequence(const BlockShape& shape) const;
  const std::vector<StoredStage>& stored() const { return stored_; }
  const std::vector<FactorCopy>& copies() const { return copies_; }
  /// Whether it is for calls whose rows begin at multiples of 16 bytes.
  bool has_even_rows() const;

 private:
  std::vector<Parameter> parameters_;  // of the kernel
  language::Kernel read_;              // whose factors are those stages and copies
  std::vector<StoredStage> stored_;
  std::vector<FactorCopy> copies_;
};

/// The ways for an architecture, those without copies first; for even rows only where the call says
/// how long some are. Throws Unsupported TILE_FORM with the reason where the kernel is no
/// contraction.
std::vector<ContractionForm> contraction_forms(const language::Kernel& kernel,
                                               std::string_view arch);

}  // namespace kiln::tile

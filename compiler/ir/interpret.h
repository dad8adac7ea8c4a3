#pragma once

#include <cstdint>
#include <span>

#include "compiler/ir/kernel.h"
#include "compiler/language/evaluate/host_tensor.h"

namespace kiln::ir {

using language::HostTensor;

/// Is told what happens while loops are interpreted.
class InterpretWatch {
 public:
  virtual ~InterpretWatch() = default;
  /// Asked once a loop iteration.
  virtual bool is_cancelled() const { return false; }
  /// A Check has found its index outside; must throw. The default is InvalidArgument
  /// INDEX_OUT_OF_RANGE.
  virtual void check_fired(int check, int64_t index, int64_t extent);
  /// Whether threads that do not wait for each other are to be found: of loops that have barriers
  /// where they need them.
  virtual bool wants_races() const { return false; }
  /// Whether found_nan() is to be called.
  virtual bool wants_nan() const { return false; }
  /// The first NaN: in an argument before the loops run, or stored by them. Must throw.
  virtual void found_nan(const Buffer& buffer, const std::vector<int64_t>& indices, bool given) {}
};

/// Runs the loops one iteration after the other on `arguments` (one a parameter; outputs are
/// written). Every index is checked against its buffer and every read of memory never written is
/// found: both are Internal errors, since lowering must not let them happen. Works on any stage of
/// the pipeline up to split_host_device. False when the watch has cancelled it.
///
/// ThreadIndex loops run as loops, with all threads of a block in step between barriers. On a watch
/// that wants it, a thread that reads what another one stored, or stores to what another one used,
/// with no barrier between them is an Internal error too, and so are blocks of one launch that meet
/// at an element.
bool interpret(const Kernel& kernel, std::span<const int64_t> sizes,
               std::span<HostTensor> arguments, InterpretWatch& watch);

/// The same, with nobody watching.
void interpret(const Kernel& kernel, std::span<const int64_t> sizes,
               std::span<HostTensor> arguments);

}  // namespace kiln::ir

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/ir/kernel.h"

namespace kiln::predict {

/// What lies behind the first cache of a core, and what it takes to have several cores work.
struct Surroundings {
  double gigahertz = 4;
  // Bytes a cycle of one core.
  double from_l2 = 32;
  double from_l3 = 12;
  double from_memory = 5;
  double from_memory_of_all = 8;  // of all cores together
  int64_t l3_bytes = int64_t{32} << 20;
  double start_cycles = 8000;  // until all cores work on a loop, and until the last one is known
                               // to be done
  std::string_view source = "estimated";
};

/// A bottleneck, and how many cycles of one core it alone would take.
struct Term {
  std::string_view name;
  double cycles = 0;
  bool on_top = false;  // added to the largest of the others
};

/// What a kernel takes when it is called again and again.
struct Prediction {
  double cycles = 0;
  double gigahertz = 1;
  std::vector<Term> terms;

  double seconds() const { return in_seconds(cycles); }
  /// Of these cycles, as those of a term.
  double in_seconds(double of) const { return of / (gigahertz * 1e9); }

  /// The largest of those that exclude each other.
  const Term& largest() const;
};

/// Of its largest term, with what comes on top.
Prediction prediction_of(std::vector<Term> terms, double gigahertz);

/// What a kernel of a CPU is predicted to take with sizes of these values, on so many cores. Pure.
///
/// The loops are those that code is generated from (the last of passes).
Prediction predict(const ir::Kernel& kernel, std::span<const int64_t> sizes,
                   const autoschedule::Machine& machine, const Surroundings& around, int threads);

}  // namespace kiln::predict

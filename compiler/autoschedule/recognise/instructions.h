#pragma once

#include <cstdint>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/language/tables/operator.h"

namespace kiln::autoschedule {

/// Vector operations of one kind: how many lanes of how many bytes each one has.
struct Operations {
  language::Operator op = language::Operator::Add;
  int64_t lanes = 1;
  int64_t element_bytes = 4;
  bool is_float = true;
  double count = 1;
};

/// Whether it is a division of whole numbers, or what is left of one.
bool divides_whole(language::Operator op);

/// Of a thread of a GPU, for an operation on one element: of a function or a division about so
/// many.
double thread_instructions(language::Operator op);
/// Of these, of floats, so many that its lanes for multiply-adds take: others have lanes of their
/// own.
double thread_multiply_adds(language::Operator op);

/// Cycles for which operations keep a core busy: the ports of multiply-adds, and all vector ports;
/// and how long one register of them takes, of which each waits for the one before.
struct Busy {
  double multiply_adds = 0;
  double all = 0;
  double chain = 0;
};
Busy busy_cycles(const Operations& operations, const Machine& machine);

}  // namespace kiln::autoschedule

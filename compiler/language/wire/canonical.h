#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"

namespace kiln::language {

/// A kernel with its schedule, numbered by what it means.
struct CanonicalKernel {
  Kernel kernel;
  Schedule schedule;
};

/// The kernel with only what reaches an argument, numbered in an order that depends neither on how
/// the client numbered it nor on names; equal expressions are one. Commutative operands keep their
/// order, since rounding may tell them apart.
///
/// What is compiled is this form, so that stages, axes and sizes of one artifact have the same
/// numbers for every requester, whose own names come in `kernel.names`. Steps of stages that reach
/// no argument are dropped. Both must be checked.
CanonicalKernel canonicalize(const Kernel& kernel, const Schedule& schedule);

/// The bytes that stand for a definition. Equal bytes: the same definition.
std::string canonical_form(const Definition& definition);
/// The bytes of a schedule, with the stages and axes as the canonical form numbers them.
std::string canonical_form(const Definition& definition, const Schedule& schedule);

/// How a reduction combines, when the table has it: `a + b` from 0, a reducer of the user's, is
/// sum.
std::optional<Combiner> combiner_of(const Definition& definition, const Reduction& reduction);

/// 32 hex digits: XXH3-128 of a canonical form.
std::string id_of(std::string_view canonical);

}  // namespace kiln::language

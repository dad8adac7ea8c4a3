#pragma once

#include <string>

#include "compiler/language/definition.h"
#include "compiler/language/step.h"

namespace kiln::language {

/// The bytes that stand for a definition: what reaches an output, in an order that does not depend
/// on how the client numbered it, and without names. Equal bytes: the same definition.
std::string canonical_form(const Definition& definition);
/// The bytes of a schedule, with the stages and axes as the canonical form numbers them.
std::string canonical_form(const Definition& definition, const Schedule& schedule);

/// 32 hex digits: XXH3-128 of a canonical form.
std::string id_of(std::string_view canonical);

}  // namespace kiln::language

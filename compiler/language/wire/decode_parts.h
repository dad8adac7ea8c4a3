#pragma once

#include "compiler/language/check/check.h"
#include "kiln/v1/kernel.pb.h"

// What decode() is made of. Not for other folders.
namespace kiln::language {

/// A name for every position of the definition. decode_names.cc
SourceMap decode_names(const v1::SourceMap& wire, const v1::Definition& definition,
                       const Limits& limits);

/// The tables: ids, kinds, types, ranks, limits. decode_tables.cc, decode_expressions.cc
void decode_tables(const v1::Definition& wire, Checked& checked);
void decode_expressions(const v1::Definition& wire, Checked& checked);

}  // namespace kiln::language

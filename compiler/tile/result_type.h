#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "compiler/tile/program.h"
#include "runtime/core/error.h"

namespace kiln::tile {

/// Throws Internal TILE_PROGRAM with what is wrong with a program.
template <typename... Args>
[[noreturn]] void refuse_program(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Internal, "TILE_PROGRAM", format, std::forward<Args>(args)...);
}

/// "float32[8, 8]"
std::string text(const TileType& type);

const TileType& type_of_operand(const Program& program, const Instruction& instruction,
                                size_t operand);
void require_operands(const Instruction& instruction, std::string_view what, size_t count);

/// The type of the result of Mma, Apply and Reduce; the others say it themselves. Throws as above
/// where operands do not fit.
TileType result_type(const Program& program, const Instruction& instruction);

}  // namespace kiln::tile

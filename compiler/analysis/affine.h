#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/analysis/accesses.h"
#include "compiler/analysis/prove.h"

/// Which elements the iterations of loops touch: the one question that independence, vectors and
/// barriers ask of indices.
namespace kiln::analysis {

/// A variable that runs over 0 .. extent - 1.
struct LoopRange {
  ir::VarRef var;
  ir::Expr extent;
};

/// An element that is read or written, and by which iterations.
struct Place {
  std::vector<ir::Expr> indices;     // one a dimension
  std::vector<LoopRange> loops;      // variables with any of their values in each access
  std::vector<ir::Expr> conditions;  // they hold where the element is touched
  bool is_store = false;
  bool is_atomic = false;      // two of these never get in each other's way
  bool index_changes = false;  // an index may be another number when it is computed again
};

/// The place of an access that stands in these loops.
Place place_of(const Access& access, std::vector<LoopRange> loops);
/// The same in the iterations of `loop`, in whose body it was found.
Place place_in(const ir::For& loop, const Access& access);

/// Whether the loops and conditions are the same.
bool are_alike_around(const Place& a, const Place& b);

enum class Touch : uint8_t {
  Never,   // proved
  May,     // not proved
  Always,  // some two iterations do
};

/// What was found out, and for which two of the places.
struct Overlap {
  Touch touch = Touch::Never;
  size_t first = 0;
  size_t second = 0;
};

/// Whether two accesses, one of them a store, touch the same element for different values of
/// `vars`.
///
/// The places are those of one buffer. Variables of their loops may have other values in each of
/// the two accesses; all others, sizes and loops around, have the same in both. `facts` are what is
/// known of those; they are the same afterwards.
///
///   C[floordiv(b*256 + t, n), floormod(b*256 + t, n)], b*256 + t < m*n, b and t    never
///   A[i*4 + j] and A[i*4 + j + 1], j < 4, i                                        may
Overlap overlap_of(const std::vector<Place>& places, const std::vector<ir::VarRef>& vars,
                   Facts& facts);

/// Whether no two values of `vars` touch one element at these indices, with all else as it is.
bool are_distinct(const std::vector<ir::Expr>& indices, const std::vector<LoopRange>& vars,
                  const std::vector<LoopRange>& others = {});

/// "A[i*4 + j] and A[i*4 + j + 1]"
std::string in_words(std::string_view buffer, const Place& a, const Place& b);

/// How much the expression grows when the variable grows by one, where that is a constant; 0 when
/// it does not use it. Nothing when the expression is not linear in the variable, or the factor is
/// no constant.
std::optional<int64_t> stride_of(const ir::Expr& expr, const ir::VarRef& var);

}  // namespace kiln::analysis

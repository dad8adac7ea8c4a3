// Types by name and size, from the language's table: the client's enumeration has the same numbers,
// so there is no second table.
#include <kiln/types.h>

#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {

std::string_view name_of(DType type) { return border::dtype_name(static_cast<int>(type)); }

std::optional<DType> find_dtype(std::string_view name) {
  const int number = border::find_dtype(name);
  if (number == 0) return std::nullopt;
  return static_cast<DType>(number);
}

std::size_t size_of(DType type) {
  return static_cast<std::size_t>(border::dtype_size(static_cast<int>(type)));
}

}  // namespace client
}  // namespace kiln

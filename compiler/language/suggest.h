#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::language {

/// The candidate nearest to what was written, of several the one that begins like it; empty when
/// none is near.
std::string_view nearest(std::string_view written, std::span<const std::string_view> candidates);

/// "; did you mean split" when a candidate is near, else "; known: split, fuse, ...".
std::string suggestion(std::string_view written, std::span<const std::string_view> candidates);

}  // namespace kiln::language

#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

// Scans whose steps run in parts at once, with a schedule for a GPU and one for a CPU.
namespace kiln::testing {

struct ScanPartCase {
  const char* name;
  std::string text;
  std::vector<int64_t> sizes = {};
};
inline std::ostream& operator<<(std::ostream& stream, const ScanPartCase& test) {
  return stream << test.name;
}

/// A running sum of one line, in parts of so many steps.
inline std::string line_in_parts(std::string_view length, int64_t part,
                                 std::string_view type = "int32",
                                 std::string_view step = "S[t - 1] + X[t]") {
  return fmt::format(R"(kernel k(X: {2}[{0}]) -> (S: {2}[{0}]) {{
      scan t {{ S[0] = X[0]  S[t] = {3} }}
      schedule cuda {{ pragma(S.idx, scan_in_parts, {1}) }}
      schedule cpu {{ pragma(S.idx, scan_in_parts, {1}) }} }})",
                     length, part, type, step);
}

/// Of rows that are bound to threads, or of columns.
inline std::string lines_in_parts(std::string_view shape, std::string_view first,
                                  std::string_view step, int64_t part,
                                  std::string_view threads = "threadIdx.x") {
  return fmt::format(R"(kernel k(X: int32[{0}]) -> (S: int32[{0}]) {{
      scan t {{ {1}  {2} }}
      schedule cuda {{
        bind(S.init.i, {4})
        bind(S.update.i, {4})
        pragma(S.idx, scan_in_parts, {3})
      }}
      schedule cpu {{ parallel(S.init.i)  parallel(S.update.i)  pragma(S.idx, scan_in_parts, {3}) }} }})",
                     shape, first, step, part, threads);
}

inline const ScanPartCase kScanPartCases[] = {
    {"parts_of_one_length", line_in_parts("256", 64)},
    {"a_last_part_of_one_step", line_in_parts("257", 64)},
    {"a_last_part_of_a_few", line_in_parts("290", 64)},
    {"two_parts", line_in_parts("65", 64)},
    {"one_part", line_in_parts("64", 64)},
    {"less_than_a_part", line_in_parts("40", 64)},
    {"one_step", line_in_parts("2", 64)},
    {"the_first_alone", line_in_parts("1", 64)},
    {"parts_that_are_no_groups", line_in_parts("61", 7)},
    {"parts_of_two", line_in_parts("17", 2)},
    {"more_parts_than_a_block_has_threads", line_in_parts("2500", 32)},
    {"of_any_length", line_in_parts("n", 64), {1000}},
    {"of_any_length_that_is_one", line_in_parts("n", 64), {1}},
    {"of_any_length_that_is_a_part", line_in_parts("n", 64), {64}},
    {"of_any_length_that_is_a_part_and_one", line_in_parts("n", 64), {65}},
    {"bytes", line_in_parts("300", 64, "int8")},
    {"longs", line_in_parts("300", 64, "int64")},
    {"a_product", line_in_parts("300", 32, "uint32", "X[t] * S[t - 1]")},
    {"the_largest", line_in_parts("300", 64, "float32", "max(S[t - 1], X[t])")},
    {"the_smallest_of_a_function", line_in_parts("300", 64, "float32", "min(exp(X[t]), S[t - 1])")},
    {"bits", line_in_parts("300", 64, "int32", "S[t - 1] ^ (X[t] & X[t - 1])")},
    {"a_choice",
     line_in_parts("300", 64, "int32", "S[t - 1] + if_then_else(t < 200, X[t + 50], 7)")},
    {"a_number_of_the_step", line_in_parts("300", 64, "int32", "S[t - 1] + int32(t) * X[0]")},
    {"from_the_end", R"(kernel k(X: int32[300]) -> (S: int32[300]) {
        scan t reverse { S[299] = X[299]  S[t] = S[t + 1] + X[t] }
        schedule cuda { pragma(S.idx, scan_in_parts, 64) }
        schedule cpu { pragma(S.idx, scan_in_parts, 64) } })"},
    {"rows", lines_in_parts("5, 300", "S[i, 0] = X[i, 0]", "S[i, t] = S[i, t - 1] + X[i, t]", 64)},
    {"rows_in_blocks", lines_in_parts("5, 300", "S[i, 0] = X[i, 0]",
                                      "S[i, t] = S[i, t - 1] + X[i, t]", 64, "blockIdx.x")},
    {"rows_of_any_length",
     lines_in_parts("m, n", "S[i, 0] = X[i, 0]", "S[i, t] = S[i, t - 1] + X[i, t]", 64,
                    "blockIdx.x"),
     {3, 275}},
    {"columns",
     lines_in_parts("300, 5", "S[0, i] = X[0, i]", "S[t, i] = max(S[t - 1, i], X[t, i])", 64)},
    {"columns_within_a_step", R"(kernel k(X: int32[300, 5]) -> (S: int32[300, 5]) {
        scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }
        schedule cuda { pragma(S.idx, scan_in_parts, 64) }
        schedule cpu { vectorize(S.update.i)  pragma(S.idx, scan_in_parts, 64) } })"},
    {"of_which_one_step_is_read", R"(kernel k(X: int32[300]) -> (Y: int32[300]) {
        S: int32[300]
        scan t { S[0] = X[0]  S[t] = S[t - 1] + X[t] }
        Y[i] = S[299] + X[i]
        schedule cuda { pragma(S.idx, scan_in_parts, 64) }
        schedule cpu { pragma(S.idx, scan_in_parts, 64) } })"},
    {"of_what_a_table_says", R"(kernel k(X: int32[300], I: uint8[300]) -> (S: int32[300]) {
        scan t { S[0] = X[0]  S[t] = S[t - 1] + X[I[t]] }
        schedule cuda { pragma(S.idx, scan_in_parts, 64) }
        schedule cpu { pragma(S.idx, scan_in_parts, 64) } })"},
};

}  // namespace kiln::testing

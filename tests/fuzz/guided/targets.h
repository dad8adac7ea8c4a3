#pragma once

#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace kiln::testing {

/// What coverage-guided fuzzing tries: what the service does with bytes that a client sends.
///
/// An input is done, or refused as a mistake of its sender; a failed KILN_CHECK, any other
/// exception and a result that contradicts another are mistakes of ours, and leave as
/// std::logic_error.
struct FuzzTarget {
  std::string_view name;  // of its folder in tests/fuzz/corpus
  void (*run)(std::string_view input);
  /// An empty message of the kind that the input is; null: the input is text.
  const google::protobuf::Message* (*message)();
};

/// decode(), canonical form, ids, printed text, steps: of a kiln.v1.KernelText.
void fuzz_kernel(std::string_view input);
/// A kernel file: parsed, formatted, printed.
void fuzz_text(std::string_view input);
/// A kernel file, a line of dashes, and a schedule file for its first kernel.
void fuzz_schedule(std::string_view input);
/// A kiln.v1.SubmitRequest: checked, scheduled, lowered for both devices, called, interpreted.
void fuzz_request(std::string_view input);

std::span<const FuzzTarget> fuzz_targets();

}  // namespace kiln::testing

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/text/text.h"
#include "compiler/target.h"
#include "runtime/core/arguments.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// A kernel of the tree, or one drawn at random, as text with one thing changed.
struct MutatedText {
  std::string text;
  std::string_view mutation;  // a MutationKind, or "argument ..." when the text is as it was
  TargetKind target = TargetKind::Llvm;
};

/// The case of a seed. `bases` are texts of one kernel each.
MutatedText draw_mutated_text(const std::vector<std::string>& bases, uint64_t seed);

/// The kernels of all kernel files in folders of the tree, with extents small enough to evaluate.
std::vector<std::string> kernel_texts(const std::vector<std::string>& folders);

/// How the call of a case is changed.
std::vector<std::string_view> argument_mutations();

/// What a kernel is called with.
struct DrawnCall {
  std::vector<ArgumentSlot> slots;
  std::vector<HostTensor> tensors;  // one for each slot; of outputs only the type
  std::map<std::string, int64_t> sizes;
};

/// Arguments that fit the kernel, but for what `mutation` changes. Their own sizes are drawn.
DrawnCall draw_call(const language::Kernel& kernel, std::string_view mutation, Random& random);

/// "A: float32(3, 4)[4, 1]", for messages.
std::string describe(const DrawnCall& call);

}  // namespace kiln::testing

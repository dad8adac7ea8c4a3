#include "compiler/codegen/aligned_code.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::codegen {
namespace {

std::string shown(const AlignedLines& lines) {
  std::string text;
  for (const AlignedLine& line : lines)
    text += std::to_string(line.from) + ": " + line.text + "\n";
  return text;
}

TEST(AlignedCode, AnInstructionOfLlvmIsOfTheLineOfItsLocation) {
  EXPECT_EQ(shown(aligned_llvm("source_filename = \"kiln\"\n"
                               "define i32 @f(ptr %0) #0 !dbg !3 {\n"
                               "  %1 = load float, ptr %0, align 4, !dbg !7, !tbaa !9\n"
                               "  %2 = add i64 1, 2, !tbaa !9\n"
                               "}\n"
                               "\n"
                               "!3 = distinct !DISubprogram(name: \"f\", line: 1)\n"
                               "!7 = !DILocation(line: 12, scope: !3)\n")),
            "1: define i32 @f(ptr %0) #0 {\n"
            "12:   %1 = load float, ptr %0, align 4, !tbaa !9\n"
            "0:   %2 = add i64 1, 2, !tbaa !9\n"
            "0: }\n");
}

TEST(AlignedCode, AssemblyIsOfTheLineOfTheDirectiveBefore) {
  EXPECT_EQ(shown(aligned_assembly("\t.text\n"
                                   "f:\n"
                                   ".Lfunc_begin0:\n"
                                   "\t.loc\t1 1 0\n"
                                   "\tpushq\t%rbp\n"
                                   "\t.loc\t1 12 0 prologue_end\n"
                                   ".Ltmp0:\n"
                                   "\tvmovups\t(%rax), %zmm0\n"
                                   ".LBB0_1:\n"
                                   "\tretq\n"
                                   "\t.section\t.debug_line,\"\",@progbits\n"
                                   "\t.long\t1\n")),
            "0: \t.text\n"
            "0: f:\n"
            "1: \tpushq\t%rbp\n"
            "12: \tvmovups\t(%rax), %zmm0\n"
            "12: .LBB0_1:\n"
            "12: \tretq\n");
}

TEST(AlignedCode, WhatIsMadeOfCodeIsOfTheLoopsOfThatCode) {
  const AlignedLines cuda = {{0, "// prelude"}, {3, "C[i] = 1;"}};
  EXPECT_EQ(shown(through({{2, "st.global"}, {1, "mov"}, {0, "ret"}, {9, "?"}}, cuda)),
            "3: st.global\n0: mov\n0: ret\n0: ?\n");
}

TEST(AlignedCode, IsJsonForClients) {
  const std::string json = aligned_json("fn f() {\n}\n", {{"asm", {{1, "retq"}}}}, "\x7f\x01");
  EXPECT_EQ(
      json,
      "{\"loops\":[\"fn f() {\",\"}\"],\"columns\":[{\"name\":\"asm\",\"lines\":[[1,\"retq\"]]}],"
      "\"cubin\":\"7f01\"}");
}

}  // namespace
}  // namespace kiln::codegen

#include <gtest/gtest.h>

#include "client/cli/aligned.h"
#include "client/cli/explain_page.h"

namespace kiln::cli {
namespace {

constexpr const char* kJson = R"({
  "loops": ["fn f(A: float32[n]) {", "  A[0] = 1 < 2", "}"],
  "columns": [
    {"name": "cuda", "lines": [[0, "// none"], [2, "A[0] = 1;"], [1, "}"]]},
    {"name": "ptx", "lines": [[2, "  st.global"], [0, "ret"], [2, "mov"]]}],
  "cubin": "7f454c46"})";

TEST(Explain, ReadsLoopsAndColumns) {
  const AlignedCode code = read_aligned(kJson);
  EXPECT_EQ(code.loops.size(), 3U);
  ASSERT_EQ(code.columns.size(), 2U);
  EXPECT_EQ(code.columns[0].lines[1].from, 2);
  EXPECT_EQ(code.cubin,
            "\x7f"
            "ELF");
}

TEST(Explain, PutsTheCodeOfALineBeneathIt) {
  EXPECT_EQ(aligned_text(read_aligned(kJson)),
            "   1 | fn f(A: float32[n]) {\n"
            "       cuda  }\n"
            "   2 |   A[0] = 1 < 2\n"
            "       cuda  A[0] = 1;\n"
            "        ptx  st.global\n"
            "        ptx  mov\n"
            "   3 | }\n");
}

TEST(Explain, ADisassemblyIsOfTheLoopsByWayOfTheCuda) {
  const CodeColumn sass = sass_column(
      "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
      ".text.f:\n"
      "\t//## File \"kernel.cu\", line 2\n"
      "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
      "\t//## File \"kernel.cu\", line 1\n"
      "        /*0010*/                   EXIT ;\n",
      read_aligned(kJson).columns[0]);
  ASSERT_EQ(sass.lines.size(), 3U);
  EXPECT_EQ(sass.name, "sass");
  EXPECT_EQ(sass.lines[0].text, ".text.f:");
  EXPECT_EQ(sass.lines[1].from, 2);
  EXPECT_EQ(sass.lines[1].text, "/*0000*/                   LDC R1, c[0x0][0x28] ;");
  EXPECT_EQ(sass.lines[2].from, 0);
}

TEST(Explain, ThePageIsOneFileWithTheSameLineInEveryColumn) {
  const std::string page = explain_page({.title = "f <for> cpu",
                                         .notes = {"sizes: n = 3"},
                                         .table = {{"STAGE", "OF ROOF"}, {"f", "37 %"}},
                                         .code = read_aligned(kJson)});
  EXPECT_NE(page.find("<title>f &lt;for&gt; cpu</title>"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"bar\" style=\"--share: 37%\">37 %</td>"), std::string::npos);
  EXPECT_NE(page.find("<div data-l=\"2\"><i>2</i>  A[0] = 1 &lt; 2 </div>"), std::string::npos);
  EXPECT_NE(page.find("<h2>ptx</h2>\n<div data-l=\"2\">  st.global </div>"), std::string::npos);
  EXPECT_NE(page.find("<div class=\"none\">ret </div>"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
}

}  // namespace
}  // namespace kiln::cli

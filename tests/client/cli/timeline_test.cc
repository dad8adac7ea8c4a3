#include "client/cli/timeline.h"

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

Span span(const std::string& name, const std::string& process, unsigned pid,
          const std::string& track, std::int64_t begin, std::int64_t end) {
  return {.name = name,
          .process = process,
          .pid = pid,
          .track = track,
          .begin = begin * 1'000'000,
          .end = end * 1'000'000};
}

/// A build of 90 ms, then a call of 10, of which a kernel has 4.
std::string page() {
  const std::vector<Span> spans = {
      span("build", "kiln", 1, "client", 0, 90), span("call", "kiln", 1, "client", 90, 100),
      span("run f<2>", "kilnd", 2, "main", 92, 98), span("kernel f", "kilnd", 2, "main", 93, 97)};
  return timeline_page("f on cpu", spans, spans[1], {{"SPAN", "SHARE"}, {"call", "10.0 %"}});
}

TEST(Timeline, HasALaneATrackAndABarASpan) {
  // 960 points are 100 ms: the call begins at 210 + 864, and what it holds is in a lane beneath.
  EXPECT_NE(page().find("<rect x=\"1074.00\" y=\"34\" width=\"96.00\" height=\"18\" rx=\"2\" "
                        "fill=\"#7fb3e0\"><title>call: 10 ms</title></rect>"),
            std::string::npos)
      << page();
  EXPECT_NE(page().find("<rect x=\"1093.20\" y=\"64\" width=\"57.60\" height=\"18\" rx=\"2\" "
                        "fill=\"#e8a33d\"><title>run f&lt;2&gt;: 6 ms</title></rect>"),
            std::string::npos);
  EXPECT_NE(page().find(">kilnd 2, main</text>"), std::string::npos);
}

TEST(Timeline, DrawsTheLastCallAlone) {
  const std::string text = page();
  const std::string alone = text.substr(text.find("The last call"));
  EXPECT_EQ(alone.find("build"), std::string::npos);
  // 960 points are 10 ms; a span that another holds is beneath it.
  EXPECT_NE(alone.find("<rect x=\"498.00\" y=\"84\" width=\"384.00\""), std::string::npos) << alone;
  EXPECT_NE(alone.find("class=\"in\" x=\"502.00\" y=\"97\">kernel f</text>"), std::string::npos);
}

TEST(Timeline, IsOneFileWithTheTable) {
  EXPECT_NE(page().find("<td class=\"bar\" style=\"--share: 10%\">10.0 %</td>"), std::string::npos);
  EXPECT_EQ(page().find("src="), std::string::npos);
  EXPECT_EQ(page().find("href="), std::string::npos);
}

}  // namespace
}  // namespace kiln::cli

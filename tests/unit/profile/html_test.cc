// The page of a profile, where names are hostile.
#include "profile/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace quern::profile {
namespace {

TEST(Html, NamesCannotEndTheDataNorStartAScript) {
  const std::string name = "</script><script>alert(1)</script><!-- ]]> {{d3_js}} \" \\ &lt; \xe2\x80\xa8";
  Profile profile;
  profile.model = name;
  profile.machine.memory.push_back({"dram", 0, 1.0});
  Section& section = profile.sections.emplace_back();
  section.phase = name;
  Buffer& buffer = section.buffers.emplace_back();
  buffer.name = buffer.type = name;
  Stages stages;
  stages.hir = {name + "\n", {{}}};
  Kernel& kernel = section.kernels.emplace_back();
  kernel.symbol = name;
  kernel.stages = std::make_shared<const Stages>(stages);
  const std::string html = HtmlText(profile);

  const std::string open = "<script type=\"application/json\" id=\"profile\">";
  const size_t begin = html.find(open), end = html.find("</script>", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string data = html.substr(begin + open.size(), end - begin - open.size());
  EXPECT_EQ(data.find('<'), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(data, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["model"], name);
  EXPECT_EQ(json["sections"][0]["buffers"][0]["type"], name);
  EXPECT_EQ(json["sections"][0]["kernels"][0]["symbol"], name);
  EXPECT_EQ(json["sections"][0]["kernels"][0]["stages"]["hir"]["text"], name + "\n");
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
}

TEST(Html, ThePageHasEveryPart) {
  const std::string html = HtmlText({});
  EXPECT_EQ(html.find("{{"), std::string::npos);
  for (const char* part :
       {"drawRoofline(", "drawTimeline(", "drawArena(", "drawTable(", "drawStages(", "Mike Bostock", "#summary"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace quern::profile

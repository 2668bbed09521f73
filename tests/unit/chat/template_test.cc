// Chat templates against what Jinja makes of them (tests/golden/record_templates.py), and against hostile ones.
#include "chat/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace quern::chat {
namespace {

using nlohmann::ordered_json;

StatusOr<std::string> Render(std::string_view source, const Dict& variables = {}, int64_t work = int64_t{1} << 28) {
  StatusOr<Template> made = Template::Parse(source);
  if (!made.ok()) return made.status();
  return made->Render(variables, {.work = work});
}

TEST(Template, RendersLikeJinja) {
  std::ifstream golden(std::string(QUERN_SOURCE_DIR) + "/tests/golden/templates.txt");
  std::string line;
  std::vector<Dict> variables;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::getline(golden, line));
    const Value value = FromJson(ordered_json::parse(line));
    variables.push_back(*value.dict());
  }
  int cases = 0, refused = 0;
  while (std::getline(golden, line)) {
    const ordered_json row = ordered_json::parse(line);
    const std::string source = row[0];
    const StatusOr<std::string> got = Render(source, variables[row[1].get<int>()]);
    if (row[2].is_null()) {
      EXPECT_FALSE(got.ok()) << source << "\ngives " << *got;
      if (!got.ok()) {
        EXPECT_THAT(std::string(got.status().message()), testing::MatchesRegex("chat template, [0-9]+:[0-9]+: .+"));
      }
      ++refused;
    } else {
      EXPECT_TRUE(got.ok()) << source << "\n" << got.status();
      if (got.ok()) {
        EXPECT_EQ(*got, row[2].get<std::string>()) << source;
      }
    }
    ++cases;
  }
  EXPECT_GT(cases, 300);
  EXPECT_GT(refused, 20);
}

TEST(Template, ErrorsSayWhere) {
  const auto says = [](std::string_view source) { return std::string(Render(source).status().message()); };
  EXPECT_EQ(says("a\n  {{ 1 + }}"), "chat template, 2:10: an expression expected, not \"}}\"");
  EXPECT_EQ(says("{% if x %}"), "chat template, 1:11: {% endif %} expected, not the end of the template");
  EXPECT_EQ(says("{% include 'x' %}"),
            "chat template, 1:4: a block \"include\" is not supported, or has no place here");
  EXPECT_EQ(says("{{ x.y.z }}"), "chat template, 1:5: \"x\" is undefined, so it has no \"y\"");
  EXPECT_EQ(says("ab{{ 'a'|frob }}"), "chat template, 1:9: there is no filter \"frob\"");
  EXPECT_EQ(says("{{ raise_exception('no tools') }}"), "chat template, 1:19: the template refuses: no tools");
  EXPECT_EQ(says("{{ 1 < 2 < 3 }}"),
            "chat template, 1:10: a comparison of a comparison is not supported; \"and\" joins two");
  EXPECT_EQ(says("{{ 'a }}"), "chat template, 1:4: the string does not end");
}

// Each of these would take for ever, or all memory, or the stack.
TEST(Template, HostileOnesAreStopped) {
  std::string nested, macros = "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}";
  for (int i = 0; i < 100000; ++i) nested += '(';
  std::string blocks, chain = "{{ 1", calls = "{{ x", filters = "{{ 'a'", nots = "{{ ", lists = "{{ ";
  for (int i = 0; i < 10000; ++i) {
    blocks += "{% if 1 %}";
    chain += "+1";
    calls += ".a";
    filters += "|trim";
    nots += "not ";
    lists += "[";
  }
  for (const std::string& source :
       {"{{ " + nested,
        macros,
        blocks,
        chain + " }}",
        calls + " }}",
        filters + " }}",
        nots + "1 }}",
        lists,
        std::string("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
        std::string("{{ 'abcdefgh' * 1000000000 }}"),
        std::string("{{ [1] * 9223372036854775807 }}"),
        std::string("{% set s = namespace(x='aa') %}{% for i in range(99) %}{% set s.x = s.x + s.x %}{% endfor %}"),
        std::string("{% set s = namespace(x=[1]) %}{% for i in range(99) %}{% set s.x = [s.x, s.x] %}{% endfor %}"),
        std::string("{% set s = namespace() %}{% set s.x = s %}"),
        std::string("{% set s = namespace() %}{% set s.x = [{'a': s}] %}"),
        std::string("{% set t = 'x' * 100000 %}{{ t.replace('x', t) }}"),
        std::string("{% set t = 'x' * 100000 %}{{ range(100000)|join(t) }}"),
        std::string("{{ ('\n' * 1000000)|indent(1000, blank=true) }}"),
        std::string("{{ 2 ** 9999999999 }}"),
        std::string("{{ 9223372036854775807 + 1 }}"),
        std::string("{{ range(10, 0, 0) }}"),
        std::string("{{ 'a'[::0] }}"),
        std::string("{{ 99999999999999999999 }}")}) {
    EXPECT_FALSE(Render(source).ok()) << source.substr(0, 100);
  }
  EXPECT_THAT(std::string(Render("{% for a in range(99) %}{{ a }}{% endfor %}", {}, 1000).status().message()),
              testing::HasSubstr("the template makes too much work"));
}

}  // namespace
}  // namespace quern::chat

// JSON schemas as grammars: what each keyword lets through; that what is drawn at random is JSON that fulfils the
// schema, beside a validator; what is refused.
#include "generate/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "generate/constraint.h"
#include "generate/sampler.h"

namespace quern::json_schema {
namespace {

using nlohmann::json;

bool Takes(const std::string& schema, const std::string& text) {
  const StatusOr<std::string> rules = Grammar(schema);
  EXPECT_TRUE(rules.ok()) << rules.status() << " of " << schema;
  if (!rules.ok()) return false;
  grammar::Matcher matcher(std::make_shared<const grammar::Grammar>(*grammar::Grammar::Parse(*rules)));
  StatusOr<grammar::Matcher::State> state = matcher.Begin();
  for (size_t i = 0; state.ok() && i < text.size(); ++i) {
    matcher.BeginToken(*state);
    state = matcher.Next(*state, static_cast<uint8_t>(text[i]));
  }
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() && matcher.Accepts(*state);
}

struct Case {
  const char* schema;
  std::vector<const char*> takes, refuses;
};

TEST(JsonSchema, EachKeywordLetsThroughWhatItSays) {
  const Case cases[] = {
      {"{}", {"{}", R"({"a": [1, {"b": null}]})", "{ \"a\":true }"}, {"1", "[]", "\"a\"", "{\"a\"}", "{\"a\":1,}", ""}},
      {"true", {"1", "[]", "null", "[1, \"x\"]"}, {"x", "[1,]"}},
      {R"({"type": "string"})",
       {R"("")", R"("a\n\u00e9\ud83d\ude00")", "\"\xC3\xA9\""},
       {R"("\ud83d")", R"("\ude00")", "\"\n\"", R"("\x")", "\"a"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {R"("ab")", R"("\u0041\n\ud83d\ude00")"},
       {R"("a")", R"("abcd")"}},
      {R"({"type": "number"})", {"0", "-1.5", "1e10", "0.25E-3"}, {"01", ".5", "1.", "+1", "1e999", "NaN"}},
      {R"({"type": "number", "minimum": 0})", {"0", "1.5"}, {"-1"}},
      {R"({"type": "integer"})", {"0", "-12", "123"}, {"1.0", "00", "-", "1e2"}},
      {R"({"type": "integer", "minimum": 7, "maximum": 1023})",
       {"7", "10", "99", "100", "999", "1000", "1023"},
       {"6", "0", "-7", "1024", "1100", "007", "9999"}},
      {R"({"type": "integer", "exclusiveMinimum": -20, "exclusiveMaximum": 5})",
       {"-19", "-1", "0", "4"},
       {"-20", "5", "-0", "-100", "50"}},
      {R"({"type": "integer", "minimum": 0.5})", {"1", "9999999999999999"}, {"0", "-1"}},
      {R"({"type": "boolean"})", {"true", "false"}, {"null", "True"}},
      {R"({"type": ["integer", "null"]})", {"3", "null"}, {"\"\""}},
      {R"({"enum": ["a\"b", 1, null, {"x": []}]})", {R"("a\"b")", "1", "null", R"({"x":[]})"}, {"2", R"("a")"}},
      {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
      {R"({"const": "x\u0001"})", {R"("x\u0001")"}, {"\"x\""}},
      {R"({"type": "array"})", {"[]", "[1, [], {}]"}, {"{}"}},
      {R"({"items": {"type": "boolean"}, "minItems": 1, "maxItems": 3})",
       {"[true]", "[true, false,true]"},
       {"[]", "[1]", "[true,true,true,true]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "array", "items": false})", {"[]"}, {"[1]"}},
      {R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": {"type": "integer"}})",
       {"[]", "[null]", "[null, true]", "[null, true, 1, 2]"},
       {"[true]", "[null, 1]", "[null, true, null]"}},
      {R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": false, "minItems": 1})",
       {"[null]", "[null, true]"},
       {"[]", "[null, true, 1]"}},
      {R"({"type": "array", "prefixItems": [{"type": "null"}], "minItems": 3, "maxItems": 3})",
       {"[null,1,2]"},
       {"[null,1]", "[null]", "[null,1,2,3]"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}, "required": ["b"]})",
       {R"({"b":null})", R"({"a":null,"b":null})", R"({"b":null,"c":null})", R"({"a": null, "b": null, "c": null})"},
       {"{}", R"({"a":null})", R"({"c":null,"b":null})", R"({"b":null,"d":null})", R"({"b":null,})", R"({,"b":null})"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}}})",
       {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
       {R"({"a":1})", R"({"a":null "b":null})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"x":1, "y":2})"},
       {R"({"x":null})"}},
      {R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"}},
      {R"({"properties": {"ab": {"type": "null"}, "a\u00e9": {}}, "additionalProperties": {"type": "integer"}})",
       {R"({"x":1})", R"({"ab":null,"a":1,"abc":2,"b":3,"":4})", R"({"ac":1})"},
       {R"({"ab":1})", R"({"x":null})", R"({"x":1,"ab":1})", R"({"\u0061b":1})", "{\"x\":1,\"a\xC3\xA9\":1}"}},
      {R"({"required": ["z"], "additionalProperties": {"type": "integer"}})",
       {R"({"z":1})", R"({"z":1,"y":2})"},
       {"{}", R"({"y":2})", R"({"z":1,"z":2})"}},
      {R"({"required": ["z"]})", {R"({"z":[]})"}, {"{}"}},
      {R"({"anyOf": [{"type": "null"}, {"type": "integer"}], "title": "t", "default": null})", {"null", "4"}, {"true"}},
      {R"({"oneOf": [{"type": "null"}, {"const": "a"}]})", {"null", "\"a\""}, {"1"}},
      {R"({"allOf": [{"type": "null"}]})", {"null"}, {"1"}},
      {R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
                     {"type": "object", "properties": {"k": {"const": "b"}, "v": {}}, "required": ["k"]}]})",
       {R"({"k":"a"})", R"({"k":"b","v":1})"},
       {R"({"k":"a","v":1})"}},
      {R"({"$ref": "#/$defs/list", "$defs": {"list": {"type": "object", "properties": {"next": {"anyOf":
          [{"$ref": "#/$defs/list"}, {"type": "null"}]}}, "required": ["next"]}}})",
       {R"({"next":null})", R"({"next":{"next":{"next":null}}})"},
       {"{}", R"({"next":{}})"}},
      {R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"$ref": "#/definitions/a~1b~0", "definitions": {"a/b~": {"type": "null"}}})", {"null"}, {"1"}},
  };
  for (const Case& c : cases) {
    for (const char* const text : c.takes) EXPECT_TRUE(Takes(c.schema, text)) << c.schema << " takes " << text;
    for (const char* const text : c.refuses) EXPECT_FALSE(Takes(c.schema, text)) << c.schema << " refuses " << text;
  }
}

TEST(JsonSchema, RangesOfIntegersAreWhatTheySay) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const int spread = round % 3 == 0 ? 30 : round % 3 == 1 ? 500 : 20000;
    int least = static_cast<int>(random() % (2 * spread)) - spread;
    int most = least + static_cast<int>(random() % spread);
    const StatusOr<std::string> rules =
        Grammar(absl::StrFormat(R"({"type": "integer", "minimum": %d, "maximum": %d})", least, most));
    ASSERT_TRUE(rules.ok()) << rules.status() << least << " " << most;
    grammar::Matcher matcher(std::make_shared<const grammar::Grammar>(*grammar::Grammar::Parse(*rules)));
    const auto begin = *matcher.Begin();
    for (int i = least - 150; i < most + 150; ++i) {
      auto state = begin;
      for (const char byte : std::to_string(i)) state = *matcher.Next(state, static_cast<uint8_t>(byte));
      ASSERT_EQ(matcher.Accepts(state), i >= least && i <= most) << i << " in " << least << ".." << most;
    }
  }
}

std::string ErrorOf(const std::string& schema) { return std::string(Grammar(schema).status().message()); }

TEST(JsonSchema, WhatWouldRestrictAndIsNotKnownIsRefused) {
  const char* const kKeywords[] = {"pattern",       "format",   "multipleOf",        "minProperties",
                                   "maxProperties", "contains", "propertyNames",     "patternProperties",
                                   "not",           "if",       "dependentRequired", "unevaluatedProperties",
                                   "$dynamicRef",   "$anchor",  "nullable",          "whatever"};
  for (const std::string keyword : kKeywords) {
    EXPECT_EQ(ErrorOf("{\"properties\": {\"a\": {\"" + keyword + "\": true}}}"),
              "the schema, #/properties/a: the keyword \"" + keyword + "\" is not taken");
  }
  EXPECT_EQ(ErrorOf(R"({"uniqueItems": true})"), "the schema, #: the keyword \"uniqueItems\" is not taken");
  EXPECT_EQ(ErrorOf(R"({"type": "array", "uniqueItems": false})"), "");
  EXPECT_EQ(ErrorOf(R"({"anyOf": [true], "minLength": 1})"),
            "the schema, #: the keyword \"minLength\" beside \"anyOf\" is not taken");
  EXPECT_EQ(ErrorOf(R"({"enum": ["a"], "minLength": 2})"),
            "the schema, #: the keyword \"minLength\" beside \"enum\" is not taken");
  EXPECT_EQ(ErrorOf(R"({"$ref": "#/$defs/a", "type": "null", "$defs": {"a": true}})"),
            "the schema, #: the keyword \"type\" beside \"$ref\" is not taken");
  EXPECT_EQ(ErrorOf(R"({"allOf": [true, true]})"), "the schema, #: allOf of more than one schema is not taken");
  EXPECT_EQ(ErrorOf(R"({"items": [true]})"),
            "the schema, #: a list as items is not taken; it is called prefixItems now");
  EXPECT_EQ(ErrorOf(R"({"type": "number", "maximum": 3})"),
            "the schema, #: maximum of numbers that are not integers is not taken, but minimum 0");
  EXPECT_EQ(ErrorOf(R"({"type": "integer", "minimum": 1e300})"), "the schema, #: minimum has more than 16 digits");
  for (const char* const both : {R"([{"type": "integer"}, {"type": "number"}])", R"([{"const": 1}, {"const": 1.0}])",
                                 R"([{"type": "string"}, {"const": "a"}])", R"([{}, {"type": "null"}])",
                                 R"([{"type": "object"}, {"type": "object"}])"})
    EXPECT_THAT(ErrorOf(std::string("{\"oneOf\": ") + both + "}"), testing::HasSubstr("may both be right")) << both;
}

TEST(JsonSchema, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("{"), "the schema is no JSON");
  EXPECT_EQ(ErrorOf("[]"), "the schema, #: a schema is an object, or true");
  EXPECT_EQ(ErrorOf("false"), "the schema, #: nothing fulfils the schema false");
  EXPECT_EQ(ErrorOf(R"({"type": "text"})"),
            "the schema, #: type \"text\" is none of object, array, string, number, integer, boolean, null");
  EXPECT_EQ(ErrorOf(R"({"type": []})"), "the schema, #: type is an empty list");
  EXPECT_EQ(ErrorOf(R"({"properties": {"a": {"anyOf": []}}})"),
            "the schema, #/properties/a: anyOf is no list, or an empty one");
  EXPECT_EQ(ErrorOf(R"({"properties": []})"), "the schema, #: properties is no object");
  EXPECT_EQ(ErrorOf(R"({"required": "a"})"), "the schema, #: required is no list");
  EXPECT_EQ(ErrorOf(R"({"required": ["a"], "additionalProperties": false})"),
            "the schema, #: \"a\" is required, but additionalProperties is false");
  EXPECT_EQ(ErrorOf(R"({"type": "string", "minLength": -1})"), "the schema, #: minLength is no whole number from 0 on");
  EXPECT_EQ(ErrorOf(R"({"type": "string", "minLength": 2, "maxLength": 1})"),
            "the schema, #: maxLength is less than minLength");
  EXPECT_EQ(ErrorOf(R"({"type": "array", "items": false, "minItems": 1})"),
            "the schema, #: minItems is more than there may be");
  EXPECT_EQ(ErrorOf(R"({"type": "integer", "minimum": 2, "maximum": 1})"),
            "the schema, #: no integer is within its bounds");
  EXPECT_EQ(ErrorOf(R"({"type": "string", "enum": [1]})"), "the schema, #: no value that is listed is of its type");
  EXPECT_EQ(ErrorOf(R"({"$ref": "#/$defs/a"})"), "the schema, #: $ref \"#/$defs/a\" leads nowhere within the schema");
  EXPECT_EQ(ErrorOf(R"({"$ref": "http://x/y"})"), "the schema, #: $ref \"http://x/y\" leads nowhere within the schema");
  EXPECT_THAT(ErrorOf(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"),
              testing::HasSubstr("has no grammar that can be followed"));
  EXPECT_THAT(ErrorOf(R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})"), testing::HasSubstr("never ends"));
}

TEST(JsonSchema, HostileOnesEndWithAnError) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{\"items\":";
  deep += "true" + std::string(1000, '}');
  EXPECT_THAT(ErrorOf(deep), testing::HasSubstr("within each other"));
  deep.clear();
  for (int i = 0; i < 100; ++i) deep += "{\"items\":";
  EXPECT_THAT(ErrorOf(deep + "true" + std::string(100, '}')), testing::HasSubstr("more than 64 schemas"));
  EXPECT_THAT(ErrorOf(std::string(500000, '[')), testing::HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf(R"({"type": "string", "maxLength": 1e9})"), testing::HasSubstr("maxLength is more than 65536"));
  EXPECT_THAT(ErrorOf(R"({"type": "array", "prefixItems": [
      {"type": "string", "maxLength": 60000}, {"type": "string", "maxLength": 60001},
      {"type": "string", "maxLength": 60002}]})"),
              testing::HasSubstr("more than 262144 steps"));
  EXPECT_THAT(ErrorOf(std::string((1 << 20) + 1, ' ')), testing::HasSubstr("at most 1048576 bytes"));
  // Each definition twice in the next: references are rules, not copies.
  std::string doubling = R"({"$ref": "#/$defs/d0", "$defs": {"d30": {"type": "null"})";
  for (int i = 0; i < 30; ++i)
    doubling += absl::StrFormat(R"(, "d%d": {"type": "array", "items": false, "prefixItems": [{"$ref": "#/$defs/d%d"},
                                {"$ref": "#/$defs/d%d"}]})",
                                i, i + 1, i + 1);
  EXPECT_EQ(ErrorOf(doubling + "}}"), "");
}

// By the specification (draft 2020-12), of what the schemas below use.
bool Fulfils(const json& root, const json& schema, const json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  const auto type_fits = [&](const json& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    return type == "boolean" ? value.is_boolean() : value.is_null();
  };
  const auto any = [&](const json& list, const auto& test) { return std::any_of(list.begin(), list.end(), test); };
  const auto below = [&](const json& inner) { return Fulfils(root, inner, value); };
  if (schema.contains("$ref") && !below(root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)))))
    return false;
  if (schema.contains("type") &&
      !(schema["type"].is_array() ? any(schema["type"], type_fits) : type_fits(schema["type"])))
    return false;
  if (schema.contains("enum") && !any(schema["enum"], [&](const json& one) { return one == value; })) return false;
  if (schema.contains("const") && schema["const"] != value) return false;
  if (schema.contains("anyOf") && !any(schema["anyOf"], below)) return false;
  if (schema.contains("oneOf") && std::count_if(schema["oneOf"].begin(), schema["oneOf"].end(), below) != 1)
    return false;
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const auto length = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
    if (length < schema.value("minLength", 0) || length > schema.value("maxLength", 1 << 30)) return false;
  }
  if (value.is_number() && (value < schema.value("minimum", -1e300) || value > schema.value("maximum", 1e300)))
    return false;
  if (value.is_array()) {
    const size_t fixed = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    if (value.size() < schema.value("minItems", 0u) || value.size() > schema.value("maxItems", 1u << 30)) return false;
    for (size_t i = 0; i < value.size(); ++i) {
      const json inner = i < fixed ? schema["prefixItems"][i] : schema.contains("items") ? schema["items"] : json(true);
      if (!Fulfils(root, inner, value[i])) return false;
    }
  }
  if (value.is_object()) {
    for (const auto& name : schema.value("required", json::array())) {
      if (!value.contains(name.get<std::string>())) return false;
    }
    for (const auto& [name, member] : value.items()) {
      const bool named = schema.contains("properties") && schema["properties"].contains(name);
      const json inner = named                                     ? schema["properties"][name]
                         : schema.contains("additionalProperties") ? schema["additionalProperties"]
                                                                   : json(true);
      if (!Fulfils(root, inner, member)) return false;
    }
  }
  return true;
}

TEST(JsonSchema, WhatIsDrawnFulfilsTheSchema) {
  const char* const kSchemas[] = {
      "{}",
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 12},
          "age": {"type": "integer", "minimum": 3, "maximum": 120}, "mail": {"type": ["string", "null"]},
          "tags": {"type": "array", "items": {"enum": ["a", "\u00e9\"", 3, null]}, "minItems": 1, "maxItems": 4}},
          "required": ["name", "age", "tags"], "additionalProperties": false})",
      R"({"type": "object", "properties": {"ab": {"type": "integer"}, "b": {"type": "null"}},
          "additionalProperties": {"type": "boolean"}})",
      R"({"type": "array", "prefixItems": [{"type": "number", "minimum": 0}, {"type": "boolean"}],
          "items": {"type": "number"}, "minItems": 1, "maxItems": 5})",
      R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"value": {"type": "integer"},
          "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 3}}, "required": ["value"]}}})",
      R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "string"}}, "required": ["k"]},
          {"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "integer"}}, "required": ["k", "v"]}]})",
  };
  // A token a byte, and some of several bytes that cross the borders of values and of characters.
  std::vector<std::string> pieces = {"</s>"};
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  for (const char* const more :
       {"{\"", "\":",   "\": ",    "\", \"", "\"}",      "}]",       "]}", "null",   "true",  "fal", "12",
        "0.5", "\\u00", "\\ud83d", "\\",     "\xF0\x9F", "\xC3\xA9", "na", "name\"", "e\": ", "  ",  "\n  "})
    pieces.emplace_back(more);
  const auto trie = std::make_shared<const text::TokenTrie>(pieces, std::vector<int32_t>{0});
  std::vector<float> logits(pieces.size(), 0);
  logits[0] = 6;
  for (const char c : {'"', '}', ']'}) logits[static_cast<size_t>(c) + 1] = 5;
  for (const char* const schema : kSchemas) {
    const StatusOr<std::string> rules = Grammar(schema);
    ASSERT_TRUE(rules.ok()) << rules.status();
    auto constraint = Constraint::Make(*rules, trie);
    ASSERT_TRUE(constraint.ok()) << constraint.status();
    TokenSampler sampler({.temperature = 1, .seed = 17}, *std::move(constraint));
    const json parsed = json::parse(schema);
    int whole = 0;
    for (int round = 0; round < 60; ++round) {
      sampler.Forget();
      std::string text;
      bool ended = false;
      for (int i = 0; i < 600 && !ended; ++i) {
        const StatusOr<int32_t> id = sampler.Draw(logits);
        ASSERT_TRUE(id.ok()) << id.status() << " behind " << text << " of " << schema;
        ended = *id == 0;
        if (!ended) text += pieces[static_cast<size_t>(*id)];
      }
      if (!ended) continue;
      ++whole;
      const json value = json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << text << " is no JSON, of " << schema;
      ASSERT_TRUE(Fulfils(parsed, parsed, value)) << text << " does not fulfil " << schema;
    }
    EXPECT_GT(whole, 30) << schema;
  }
}

}  // namespace
}  // namespace quern::json_schema

// Grammars: what is refused and where; which texts are let through, beside the definition on small random grammars;
// what hostile ones cost.
#include "generate/grammar/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "generate/grammar/matcher.h"

namespace quern::grammar {
namespace {

std::string ErrorOf(std::string_view text) { return std::string(Grammar::Parse(text).status().message()); }

enum class Fit { kNo, kBegins, kWhole, kError };

Fit FitOf(std::string_view grammar, std::string_view text) {
  StatusOr<Grammar> parsed = Grammar::Parse(grammar);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << " in " << grammar;
  if (!parsed.ok()) return Fit::kError;
  Matcher matcher(std::make_shared<const Grammar>(*std::move(parsed)));
  StatusOr<Matcher::State> state = matcher.Begin();
  for (size_t i = 0; state.ok() && i < text.size(); ++i) {
    matcher.BeginToken(*state);
    state = matcher.Next(*state, static_cast<uint8_t>(text[i]));
  }
  if (!state.ok()) return Fit::kError;
  return matcher.Accepts(*state) ? Fit::kWhole : *state == Matcher::kDead ? Fit::kNo : Fit::kBegins;
}

TEST(Grammar, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf(""), "the grammar, 1:1: there is no rule called root, where a text begins");
  EXPECT_EQ(ErrorOf("root ::= \"a\"\nroot ::= \"b\""), "the grammar, 2:1: the rule root is defined twice");
  EXPECT_EQ(ErrorOf("root ::= \"a\"\n  | item"), "the grammar, 2:5: the rule item is not defined");
  EXPECT_EQ(ErrorOf("root ::= \"a"), "the grammar, 1:10: the text in quotes does not end");
  EXPECT_EQ(ErrorOf("root ::= (\"a\" | \"b\"\nx ::= \"c\""), "the grammar, 2:3: the ( of 1:10 lacks its )");
  EXPECT_EQ(ErrorOf("root ::= \"a\" )"), "the grammar, 1:14: the rule should end here, or go on with |");
  EXPECT_EQ(ErrorOf("root = \"a\""), "the grammar, 1:6: ::= is expected behind the name of the rule root");
  EXPECT_EQ(ErrorOf("::= \"a\""), "the grammar, 1:1: a rule is expected: name ::= ..");
  EXPECT_EQ(ErrorOf("root ::= [a-z"), "the grammar, 1:10: the [ lacks its ]");
  EXPECT_EQ(ErrorOf("root ::= [z-a]"), "the grammar, 1:11: the range ends before it begins");
  EXPECT_EQ(ErrorOf("root ::= []"), "the grammar, 1:10: no character is in the class");
  EXPECT_EQ(ErrorOf("root ::= *"),
            "the grammar, 1:10: there is nothing to repeat; of two repetitions put the first in brackets");
  EXPECT_EQ(ErrorOf("root ::= \"a\"*?"),
            "the grammar, 1:14: there is nothing to repeat; of two repetitions put the first in brackets");
  EXPECT_EQ(ErrorOf("root ::= \"a\"{3,2}"), "the grammar, 1:16: 2 is less than 3");
  EXPECT_EQ(ErrorOf("root ::= \"a\"{,2}"), "the grammar, 1:14: a number of repetitions is expected");
  EXPECT_EQ(ErrorOf("root ::= \"a\"{2"), "the grammar, 1:15: {m}, {m,} or {m,n} lacks its }");
  EXPECT_EQ(ErrorOf("root ::= \"\\q\"").substr(0, 42), "the grammar, 1:11: there is no such escape");
  EXPECT_EQ(ErrorOf("root ::= \"\\x4\""), "the grammar, 1:14: \\x has 2 hexadecimal digits");
  EXPECT_EQ(ErrorOf("root ::= \"\\uD800\""), "the grammar, 1:11: that is no character of Unicode");
  EXPECT_EQ(ErrorOf("root ::= \"\\U00110000\""), "the grammar, 1:11: that is no character of Unicode");
  EXPECT_EQ(ErrorOf("root ::= \"\xC0\x80\""), "the grammar, 1:11: the text is no UTF-8");
}

TEST(Grammar, LeftRecursionIsRefusedByName) {
  const std::string what = " may begin with itself: left recursion is not taken";
  EXPECT_EQ(ErrorOf("root ::= root \"a\" | \"b\""), "the grammar, 1:1: the rule root" + what);
  EXPECT_EQ(ErrorOf("root ::= x\nx ::= \"a\"? y\ny ::= x \"b\" | \"c\""), "the grammar, 2:1: the rule x" + what);
  EXPECT_EQ(ErrorOf("root ::= x\nx ::= none none x \"b\" | \"c\"\nnone ::= \"\" | \" \""),
            "the grammar, 2:1: the rule x" + what);
  EXPECT_EQ(ErrorOf("root ::= (root \"a\"){2} | \"b\""), "the grammar, 1:1: the rule root" + what);
  EXPECT_EQ(ErrorOf("root ::= \"b\" | \"a\" root"), "") << "on the right it is taken";
}

TEST(Grammar, RulesWithoutEndAreRefused) {
  EXPECT_EQ(ErrorOf("root ::= \"a\" root"), "the grammar, 1:1: the rule root never ends");
  EXPECT_EQ(ErrorOf("root ::= \"a\" | x\nx ::= \"b\" y\ny ::= \"c\" x"), "the grammar, 2:1: the rule x never ends");
}

TEST(Grammar, TakesWhatItsLanguageHas) {
  EXPECT_EQ(FitOf("# numbers\nroot ::=\n  digit+ ( # grouped\n \".\" digit+\n )? # end\n\n digit ::= [0-9]", "12.5"),
            Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= \"a\"\n  | \"b\"\n", "b"), Fit::kWhole) << "a line may begin with |";
  EXPECT_EQ(FitOf("root ::= \"a\" |\n\"b\"", "b"), Fit::kWhole);
  const std::string escapes = R"(root ::= "\n\r\t\\\"\x41\u00e9\U0001F600" [\]\-\^\[])";
  EXPECT_EQ(FitOf(escapes, "\n\r\t\\\"A\xC3\xA9\xF0\x9F\x98\x80]"), Fit::kWhole);
  EXPECT_EQ(FitOf(escapes, "\n\r\t\\\"A\xC3\xA9\xF0\x9F\x98\x80-"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= [a-]", "-"), Fit::kWhole) << "a - at the end is itself";
  EXPECT_EQ(FitOf("root ::= [^a-y]", "z"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= [^a-y]", "m"), Fit::kNo);
  EXPECT_EQ(FitOf("root ::= .", "\n"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= \"ab\"{2}", "abab"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= \"ab\"{2}", "abb"), Fit::kNo);
  EXPECT_EQ(FitOf("root ::= (\"a\" | \"b\"){2,}", "abba"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= \"\"", ""), Fit::kWhole);
}

TEST(Grammar, CharactersMayComeInParts) {
  const std::string grammar = "root ::= [\xC3\xA0-\xC3\xA9]{2}";  // U+00E0 to U+00E9
  EXPECT_EQ(FitOf(grammar, "\xC3"), Fit::kBegins);
  EXPECT_EQ(FitOf(grammar, "\xC3\xA5"), Fit::kBegins);
  EXPECT_EQ(FitOf(grammar, "\xC3\xAA"), Fit::kNo);
  EXPECT_EQ(FitOf(grammar, "\xC4"), Fit::kNo) << "no character of the class begins so";
  EXPECT_EQ(FitOf(grammar, "\xC3\xA0\xC3\xA9"), Fit::kWhole);
  // What is no UTF-8 is no character: overlong forms, surrogates, bytes above U+10FFFF.
  for (const char* const wrong : {"\xC0", "\xC1\x81", "\xE0\x80", "\xED\xA0", "\xF0\x80", "\xF4\x90", "\xF5", "\x80"})
    EXPECT_EQ(FitOf("root ::= .", wrong), Fit::kNo) << static_cast<int>(static_cast<uint8_t>(wrong[0]));
  EXPECT_EQ(FitOf("root ::= .", "\xED\x9F\xBF"), Fit::kWhole);
  EXPECT_EQ(FitOf("root ::= .", "\xF4\x8F\xBF\xBF"), Fit::kWhole);
}

TEST(CodePoints, TheAutomatonIsTheSetForEveryCharacter) {
  std::mt19937 random(5);
  ByteStates states;
  for (int round = 0; round < 20; ++round) {
    CodePoints set;
    for (int i = 0; i < 1 + round % 4; ++i) {
      const uint32_t first = random() % (round % 2 == 0 ? 0x900 : 0x110000);
      set.emplace_back(first, std::min<uint32_t>(first + random() % (1u << (random() % 20)), kLastCodePoint));
    }
    set = Normalised(set);
    if (set.empty()) continue;
    const uint16_t begin = states.Of(set), other = states.Of(Complement(set));
    for (uint32_t point = 0; point <= kLastCodePoint; point += point < 0x2000 ? 1 : 1 + random() % 97) {
      if (IsSurrogate(point)) continue;
      bool within = false;
      for (const auto& [first, last] : set) within |= point >= first && point <= last;
      uint16_t in = begin, out = other;
      for (const char byte : Encode(point)) {
        in = states.Next(in, static_cast<uint8_t>(byte));
        out = states.Next(out, static_cast<uint8_t>(byte));
      }
      ASSERT_EQ(in == ByteStates::kMatched, within) << point;
      ASSERT_EQ(out == ByteStates::kMatched, !within) << point;
    }
  }
}

// Random grammars over a, b and U+00E9, as text and by definition: the set of their strings of at most kLongest
// characters, which grows until it is a fixed point.
constexpr size_t kLongest = 6;
using Strings = std::set<std::u32string>;

struct Random {
  std::mt19937 random;
  int rules;
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
};

struct Tree {
  int kind;  // 0 literal, 1 class, 2 rule, 3 sequence, 4 alternatives, 5 repetition
  std::u32string characters = {};
  int rule = 0, least = 0, most = 0;
  std::vector<Tree> parts = {};
};

constexpr char32_t kAlphabet[] = {U'a', U'b', U'\u00E9'};

Tree RandomTree(Random& r, int depth) {
  Tree tree = {.kind = static_cast<int>(r.Below(depth > 0 ? 6 : 3))};
  if (tree.kind < 2) {
    const uint32_t count = tree.kind == 0 ? r.Below(3) : 1 + r.Below(2);
    for (uint32_t i = 0; i < count; ++i) tree.characters += kAlphabet[r.Below(3)];
  } else if (tree.kind == 2) {
    tree.rule = static_cast<int>(r.Below(static_cast<uint32_t>(r.rules)));
  } else {
    const uint32_t count = tree.kind == 5 ? 1 : 1 + r.Below(3);
    for (uint32_t i = 0; i < count; ++i) tree.parts.push_back(RandomTree(r, depth - 1));
    tree.least = static_cast<int>(r.Below(3));
    tree.most = r.Below(3) == 0 ? -1 : tree.least + static_cast<int>(r.Below(3));
  }
  return tree;
}

std::string Print(const Tree& tree) {
  std::string text;
  switch (tree.kind) {
    case 0: text = "\""; break;
    case 1: text = "["; break;
    case 2: return tree.rule == 0 ? "root" : "r" + std::to_string(tree.rule);
    default: text = "(";
  }
  if (tree.kind < 2) {
    for (const char32_t c : tree.characters) text += Encode(c);
    return text + (tree.kind == 0 ? "\"" : "]");
  }
  for (size_t i = 0; i < tree.parts.size(); ++i)
    text += (i == 0 ? "" : tree.kind == 4 ? " | " : " ") + Print(tree.parts[i]);
  text += ")";
  if (tree.kind != 5) return text;
  text += "{" + std::to_string(tree.least) + ",";
  return text + (tree.most < 0 ? "" : std::to_string(tree.most)) + "}";
}

Strings Joined(const Strings& a, const Strings& b) {
  Strings result;
  for (const auto& x : a) {
    for (const auto& y : b) {
      if (x.size() + y.size() <= kLongest) result.insert(x + y);
    }
  }
  return result;
}

Strings Evaluate(const Tree& tree, const std::vector<Strings>& rules) {
  Strings result;
  switch (tree.kind) {
    case 0: return {tree.characters};
    case 1:
      for (const char32_t c : tree.characters) result.insert(std::u32string(1, c));
      return result;
    case 2: return rules[static_cast<size_t>(tree.rule)];
    case 3:
      result = {U""};
      for (const Tree& part : tree.parts) result = Joined(result, Evaluate(part, rules));
      return result;
    case 4:
      for (const Tree& part : tree.parts) result.merge(Evaluate(part, rules));
      return result;
    default: {
      const Strings one = Evaluate(tree.parts[0], rules);
      Strings power = {U""};
      for (int i = 0; i < tree.least; ++i) power = Joined(power, one);
      result = power;
      for (int i = tree.least; tree.most < 0 ? i < tree.least + static_cast<int>(kLongest) : i < tree.most; ++i) {
        power = Joined(power, one);
        result.insert(power.begin(), power.end());
      }
      return result;
    }
  }
}

TEST(Matcher, IsTheDefinitionOnRandomGrammars) {
  constexpr uint32_t kSeed = 20261124;
  Random r = {.random = std::mt19937(kSeed), .rules = 3};
  int compared = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<Tree> trees;
    std::string text;
    for (int i = 0; i < r.rules; ++i) {
      trees.push_back(RandomTree(r, 2));
      text += (i == 0 ? std::string("root") : "r" + std::to_string(i)) + " ::= " + Print(trees.back()) + "\n";
    }
    StatusOr<Grammar> grammar = Grammar::Parse(text);
    if (!grammar.ok()) {
      const std::string why(grammar.status().message());
      ASSERT_TRUE(why.find("left recursion") != why.npos || why.find("never ends") != why.npos) << why << "\n" << text;
      continue;
    }
    ++compared;
    std::vector<Strings> rules(trees.size());
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t i = 0; i < trees.size(); ++i) {
        Strings strings = Evaluate(trees[i], rules);
        grown |= strings.size() > rules[i].size();
        rules[i] = std::move(strings);
      }
    }
    Matcher matcher(std::make_shared<const Grammar>(*std::move(grammar)));
    const StatusOr<Matcher::State> begin = matcher.Begin();
    ASSERT_TRUE(begin.ok()) << begin.status();
    // Every string of at most kLongest characters.
    const auto visit = [&](const auto& self, const std::u32string& string, Matcher::State state) -> void {
      ASSERT_EQ(matcher.Accepts(state), rules[0].contains(string))
          << "seed " << kSeed << ", round " << round << ", " << string.size() << " characters\n"
          << text;
      if (string.size() == kLongest || state == Matcher::kDead) {
        const auto next = rules[0].lower_bound(string);
        ASSERT_TRUE(state != Matcher::kDead || next == rules[0].end() || next->compare(0, string.size(), string) != 0)
            << "a beginning was given up\n"
            << text;
        return;
      }
      for (const char32_t c : kAlphabet) {
        Matcher::State next = state;
        for (const char byte : Encode(c)) {
          const StatusOr<Matcher::State> found = matcher.Next(next, static_cast<uint8_t>(byte));
          ASSERT_TRUE(found.ok()) << found.status();
          next = *found;
        }
        self(self, string + c, next);
        if (testing::Test::HasFatalFailure()) return;
      }
    };
    visit(visit, U"", *begin);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared, 200);
}

std::string Repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(Grammar, HostileOnesEndWithAnError) {
  EXPECT_THAT(ErrorOf("root ::= " + Repeated("(", 100000)), testing::HasSubstr("more than 100 brackets"));
  EXPECT_EQ(ErrorOf("root ::= " + Repeated("(", 100) + "\"a\"" + Repeated(")", 100)), "");
  EXPECT_THAT(ErrorOf("root ::= \"a\"{99999999999}"), testing::HasSubstr("1:14: more than 65536 repetitions"));
  EXPECT_THAT(ErrorOf("root ::= [ab]{60000} [ab]{60000} [ab]{60000} [ab]{60000} [ab]{60000}"),
              testing::HasSubstr("more than 262144 steps"));
  EXPECT_THAT(ErrorOf(std::string(kMostText + 1, ' ')), testing::HasSubstr("at most 1048576 bytes"));
  std::string rules = "root ::= \"a\"\n";
  for (int i = 0; i < kMostRules; ++i) rules += "r" + std::to_string(i) + " ::= \"a\"\n";
  EXPECT_THAT(ErrorOf(rules), testing::HasSubstr("at most 16384 rules"));
  std::string classes = "root ::= \"a\"";
  for (int i = 0; i < 40000; ++i)
    classes += absl::StrFormat(" [\\U%08X\\U%08X]", 0x10000 + 64 * (i % 9000), 0x10001 + 61 * i % 0xF0000);
  EXPECT_THAT(ErrorOf(classes), testing::HasSubstr("too many different characters"));
}

StatusOr<Matcher::State> ReadAll(Matcher& matcher, std::string_view text) {
  StatusOr<Matcher::State> state = matcher.Begin();
  for (size_t i = 0; state.ok() && i < text.size(); ++i) {
    matcher.BeginToken(*state);
    state = matcher.Next(*state, static_cast<uint8_t>(text[i]));
  }
  return state;
}

TEST(Matcher, LimitsAreErrorsAndNeverLetThrough) {
  const auto matcher = [](std::string_view text) {
    return Matcher(std::make_shared<const Grammar>(*Grammar::Parse(text)));
  };
  // Nested repetitions of what may be empty: a million ways to begin.
  Matcher wide = matcher("root ::= (((\"a\"? \"b\"?){200} \"c\"?){200} \"d\"?){200}");
  EXPECT_EQ(wide.Begin().status().code(), absl::StatusCode::kResourceExhausted);
  Matcher deep = matcher("root ::= \"[\" root \"]\" | \"x\"");
  EXPECT_TRUE(ReadAll(deep, std::string(4000, '[')).ok());
  EXPECT_THAT(ReadAll(deep, std::string(5000, '[')).status().message(),
              testing::HasSubstr("more than 4096 rules within each other"));
  // Two ways to call at each level: stacks double.
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 20; ++i) doubling += absl::StrFormat("r%d ::= r%d \"a\" | r%d \"b\"\n", i, i + 1, i + 1);
  Matcher many = matcher(doubling + "r20 ::= \"x\"");
  EXPECT_THAT(many.Begin().status().message(), testing::HasSubstr("more than 4096 stacks at once"));
}

TEST(Matcher, RecursionAtTheEndOfARuleStaysFlat) {
  Matcher matcher(std::make_shared<const Grammar>(*Grammar::Parse("root ::= [a-c] root | \".\"")));
  const StatusOr<Matcher::State> state = ReadAll(matcher, std::string(100000, 'b') + ".");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(matcher.Accepts(*state));
}

TEST(Matcher, ForgettingStatesChangesNothing) {
  // Each character is a state of its own.
  Matcher matcher(std::make_shared<const Grammar>(*Grammar::Parse("root ::= \"<\" root \">\" | [ab]{60000} \"!\"")));
  std::string text = "<<";
  for (int i = 0; i < 60000; ++i) text += "ab"[i % 3 == 0];
  const StatusOr<Matcher::State> state = ReadAll(matcher, text + "!>>");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(matcher.Accepts(*state));
  EXPECT_EQ(*ReadAll(matcher, text + "!>>>"), Matcher::kDead);
  EXPECT_EQ(*ReadAll(matcher, text + "b"), Matcher::kDead);
}

}  // namespace
}  // namespace quern::grammar

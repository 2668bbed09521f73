// Tokens under a grammar: the mask beside each token tried alone, and that nothing gets around it.
#include "generate/constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "generate/sampler.h"

namespace quern {
namespace {

std::shared_ptr<const text::TokenTrie> TrieOf(const std::vector<std::string>& pieces, std::vector<int32_t> ends) {
  return std::make_shared<const text::TokenTrie>(pieces, std::move(ends));
}

std::unique_ptr<Constraint> ConstraintOf(std::string_view grammar, std::shared_ptr<const text::TokenTrie> trie) {
  auto made = Constraint::Make(grammar, std::move(trie));
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<int32_t> Ids(const TokenMask& mask, int32_t size) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < size; ++id) {
    if (mask.Has(static_cast<size_t>(id))) ids.push_back(id);
  }
  return ids;
}

TEST(Constraint, TheMaskIsWhatEachTokenDoesAlone) {
  std::mt19937 random(3);
  std::vector<std::string> pieces = {"",
                                     "",
                                     "a",
                                     "b",
                                     "c",
                                     "\xC3",
                                     "\xA9",
                                     "\xC3\xA9",
                                     "a\xC3",
                                     "\xA9"
                                     "b"};
  while (pieces.size() < 60) {
    std::string piece;
    for (uint32_t i = 0; i < 1 + random() % 4; ++i) piece += "abc"[random() % 3];
    pieces.push_back(piece);
  }
  const auto trie = TrieOf(pieces, {1, 4});
  for (const char* const grammar : {"root ::= \"ab\" root \"c\" | \"b\"+ | \"\xC3\xA9\" root",
                                    "root ::= (\"a\" | \"ab\" | \"bca\"){2,4} \"\xC3\xA9\"?", "root ::= .{0,7}"}) {
    const auto parsed = std::make_shared<const grammar::Grammar>(*grammar::Grammar::Parse(grammar));
    for (int round = 0; round < 30; ++round) {
      const auto constraint = ConstraintOf(grammar, trie);
      std::string text;
      for (int step = 0; step < 8; ++step) {
        grammar::Matcher matcher(parsed);
        grammar::Matcher::State at = *matcher.Begin();
        for (const char byte : text) at = *matcher.Next(at, static_cast<uint8_t>(byte));
        std::vector<int32_t> want;
        for (int32_t id = 0; id < trie->size(); ++id) {
          grammar::Matcher::State state = at;
          const std::string& piece = pieces[static_cast<size_t>(id)];
          for (const char byte : piece) state = *matcher.Next(state, static_cast<uint8_t>(byte));
          const bool end = id == 1 || id == 4;
          if (end ? matcher.Accepts(at) : !piece.empty() && state != grammar::Matcher::kDead) want.push_back(id);
        }
        const auto mask = constraint->Allowed();
        if (want.empty()) {
          EXPECT_EQ(mask.status().message(), "no token of the vocabulary goes on with a text of the grammar");
          break;
        }
        ASSERT_TRUE(mask.ok()) << mask.status();
        ASSERT_EQ(Ids(**mask, trie->size()), want) << "behind " << text << " in " << grammar;
        EXPECT_EQ(constraint->complete(), matcher.Accepts(at));
        const int32_t id = want[random() % want.size()];
        ASSERT_TRUE(constraint->Accept(id).ok());
        if (id == 1 || id == 4) {
          EXPECT_TRUE(constraint->complete());
          EXPECT_EQ(constraint->Allowed().status().message(), "the answer has ended, as its grammar has it");
          break;
        }
        text += pieces[static_cast<size_t>(id)];
      }
    }
  }
}

TEST(Constraint, WhatLeavesTheGrammarEndsIt) {
  const auto trie = TrieOf({"</s>", "a", "b"}, {0});
  const auto constraint = ConstraintOf("root ::= \"ab\"", trie);
  EXPECT_EQ(constraint->Accept(2).message(), "token 2 does not go on with a text of the grammar");
  EXPECT_EQ(constraint->Allowed().status().message(), "the answer left its grammar");
  EXPECT_EQ(constraint->Accept(1).message(), "the answer left its grammar");
  EXPECT_FALSE(constraint->complete());
  constraint->Restart();
  EXPECT_TRUE(constraint->Accept(1).ok());
  EXPECT_FALSE(constraint->Accept(0).ok()) << "an end before the text is whole";
  for (const int32_t id : {-1, 3}) {
    constraint->Restart();
    EXPECT_FALSE(constraint->Accept(id).ok());
  }
  EXPECT_EQ(Constraint::Make("root ::= \"a\"", TrieOf({"a"}, {})).status().message(),
            "the vocabulary has no token that ends a text, which a grammar needs");
  EXPECT_FALSE(Constraint::Make("root ::= root", trie).ok());
}

TEST(Constraint, ALimitEndsTheAnswer) {
  const auto trie = TrieOf({"</s>", "a", "b"}, {0});
  const auto constraint = ConstraintOf("root ::= \"b\" (((\"a\"? \"b\"?){200} \"c\"?){200} \"d\"?){200}", trie);
  EXPECT_EQ(constraint->Allowed().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(constraint->Allowed().ok());
}

TEST(TokenSampler, DrawsWhatItsGrammarAllows) {
  const auto trie = TrieOf({"</s>", "yes", "no", " ", "y", "es"}, {0});
  const std::vector<float> logits = {9, 1, 2, 8, 0, 7};
  TokenSampler greedy({}, ConstraintOf("root ::= \"yes\" | \"no\"", trie));
  EXPECT_EQ(*greedy.Draw(logits), 2);
  EXPECT_TRUE(greedy.complete());
  EXPECT_EQ(*greedy.Draw(logits), 0);
  EXPECT_EQ(greedy.Draw(logits).status().message(), "the answer has ended, as its grammar has it");
  EXPECT_EQ(greedy.Next(logits), -1);
  greedy.Observe({});
  EXPECT_EQ(greedy.Next(logits), 2) << "another answer";
  greedy.Forget();
  EXPECT_EQ(greedy.Next(logits), 2);
  std::map<int32_t, int> counts;
  TokenSampler warm({.temperature = 1, .seed = 1}, ConstraintOf("root ::= \"yes\" | \"no\"", trie));
  for (int i = 0; i < 300; ++i) {
    warm.Forget();
    ++counts[warm.Next(logits)];
  }
  EXPECT_THAT(counts, testing::UnorderedElementsAre(testing::Pair(1, testing::Gt(0)), testing::Pair(2, testing::Gt(0)),
                                                    testing::Pair(4, testing::Gt(0))));
}

TEST(TokenSampler, WithNothingLeftThereIsAnErrorAndNoToken) {
  const auto trie = TrieOf({"</s>", "yes", "no"}, {0});
  const std::string what = "no token that the grammar lets come has a logit above minus infinity";
  for (const double temperature : {0.0, 1.0}) {
    const auto sampler = [&](std::vector<std::pair<int32_t, float>> bias) {
      return TokenSampler({.temperature = temperature, .logit_bias = std::move(bias)},
                          ConstraintOf("root ::= \"no\"", trie));
    };
    EXPECT_EQ(sampler({}).Draw(std::vector<float>{1, 2, NAN}).status().message(), what);
    EXPECT_EQ(sampler({}).Draw(std::vector<float>{1, 2, -INFINITY}).status().message(), what);
    EXPECT_EQ(sampler({}).Draw(std::vector<float>{1, 2}).status().message(), what) << "fewer logits than tokens";
    EXPECT_EQ(sampler({{2, -INFINITY}}).Draw(std::vector<float>{1, 2, 3}).status().message(), what) << "banned";
    EXPECT_EQ(*sampler({}).Draw(std::vector<float>{1, 2, -3}), 2);
    EXPECT_EQ(*sampler({}).Draw(std::vector<float>{1, 2, -3, 99}), 2) << "a logit beyond the vocabulary";
  }
}

}  // namespace
}  // namespace quern

// The main function of every test program: gtest's, and an exit code of 77 where nothing was tested, so that ctest says
// Skipped. A line for each skipped test says why ("skipped: Math.OnGpu: no device"). No test at all is a failure: a
// filter that matches nothing must not pass.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

// The first message of a skipped test, on one line.
std::string ReasonOf(const testing::TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.skipped()) continue;
    std::string text = part.message();
    for (char& c : text) {
      if (c == '\n') c = ' ';
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }
  return "no reason given";
}

void PrintSkipped(const testing::UnitTest& all) {
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!test.result()->Skipped()) continue;
      std::printf("skipped: %s.%s: %s\n", suite.name(), test.name(), ReasonOf(*test.result()).c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  PrintSkipped(all);
  if (testing::GTEST_FLAG(list_tests)) return result;
  if (all.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test of this program is among those asked for\n");
    return 1;
  }
  return result == 0 && all.successful_test_count() == 0 ? 77 : result;
}

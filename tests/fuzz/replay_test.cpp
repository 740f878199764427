#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {
namespace {

struct named_target {
  const char* name;
  target run;
};

class fuzz_corpus : public testing::TestWithParam<named_target> {};

TEST_P(fuzz_corpus, keeps_every_promise) {
  const auto folder = std::filesystem::path{BULKHEAD_FUZZ_CORPUS} / GetParam().name;
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    std::ifstream file{entry.path(), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    ASSERT_FALSE(file.bad()) << entry.path();
    EXPECT_NO_THROW(GetParam().run(bytes)) << entry.path();
    ++inputs;
  }
  EXPECT_GT(inputs, 0U) << folder;
  EXPECT_NO_THROW(GetParam().run({}));
}

INSTANTIATE_TEST_SUITE_P(all, fuzz_corpus,
                         testing::Values(named_target{"guest_frame", guest_frame_target},
                                         named_target{"host_config", host_config_target},
                                         named_target{"http_post", http_post_target},
                                         named_target{"json_rpc", json_rpc_target},
                                         named_target{"json_schema", json_schema_target},
                                         named_target{"oauth_challenge", oauth_challenge_target},
                                         named_target{"oauth_documents", oauth_documents_target},
                                         named_target{"policy", policy_target},
                                         named_target{"printable", printable_target},
                                         named_target{"run_answer", run_answer_target},
                                         named_target{"server_config", server_config_target},
                                         named_target{"sse_reader", sse_reader_target},
                                         named_target{"tenant_config", tenant_config_target},
                                         named_target{"toon", toon_target},
                                         named_target{"web_url", web_url_target}),
                         [](const auto& each) { return std::string{each.param.name}; });

} // namespace
} // namespace bulkhead::fuzz

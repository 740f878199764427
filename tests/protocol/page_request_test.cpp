#include "protocol/page_request.hpp"

#include <gtest/gtest.h>

#include "protocol/page_answer.hpp"

namespace bulkhead {
namespace {

constexpr std::int64_t now = 1'796'065'510'000;
const std::string id(32, 'a');

tl::expected<page_request, outgoing_answer> read(const std::string& target,
                                                 const std::string& method = "GET",
                                                 std::vector<http_field> fields = {}) {
  return read_page_request({method, target, std::move(fields), {}, {}}, now);
}

std::uint32_t refused(const std::string& target, const std::string& method = "GET",
                      std::vector<http_field> fields = {}) {
  auto result = read(target, method, std::move(fields));
  return result ? 0 : result.error().status;
}

TEST(page_request, the_page_has_its_part_of_the_targets) {
  for (const auto* target : {"/ui", "/ui?x", "/ui/", "/ui/page.js", "/ui/api/state?a=b"}) {
    EXPECT_TRUE(is_page_target(target)) << target;
  }
  for (const auto* target : {"/", "/mcp", "/uiapi", "/UI/", "/metrics?/ui/"}) {
    EXPECT_FALSE(is_page_target(target)) << target;
  }
}

TEST(page_request, files_and_the_root) {
  EXPECT_EQ(read("/ui")->wish, page_wish::root);
  EXPECT_EQ(read("/ui/")->wish, page_wish::file);
  EXPECT_EQ(read("/ui/")->name, "index.html");
  EXPECT_EQ(read("/ui/page.js?v=1", "HEAD")->name, "page.js");
  EXPECT_EQ(refused("/ui/page.js", "POST"), 405u);
}

TEST(page_request, what_the_interface_has) {
  EXPECT_EQ(read("/ui/api/state")->wish, page_wish::snapshot);
  EXPECT_EQ(read("/ui/api/events")->wish, page_wish::events);
  auto run = read("/ui/api/runs/" + id);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->wish, page_wish::run);
  EXPECT_EQ(run->run, id);
  auto cancel = read("/ui/api/runs/" + id + "/cancel", "POST");
  ASSERT_TRUE(cancel);
  EXPECT_EQ(cancel->wish, page_wish::cancel);
  auto artifact = read("/ui/api/artifacts/" + id + "/a%20b.png");
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->what.artifact, "a b.png");
  auto output = read("/ui/api/outputs/" + id + "/stderr");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->what.stream, stream_id::err);
}

TEST(page_request, nothing_else_is_there) {
  for (const std::string target :
       {"/ui/api/", "/ui/api/nothing", "/ui/api/runs/", "/ui/api/runs/../state",
        "/ui/api/runs/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "/ui/api/artifacts/",
        "/ui/api/artifacts/short/x", "/ui/api/outputs/short/stdout"}) {
    EXPECT_EQ(refused(target), 404u) << target;
  }
  EXPECT_EQ(refused("/ui/api/artifacts/" + id + "/a%2Fb"), 404u);
  EXPECT_EQ(refused("/ui/api/outputs/" + id + "/secret"), 404u);
  EXPECT_EQ(refused("/ui/api/runs/" + id + "/other"), 404u);
}

TEST(page_request, methods_are_those_of_each) {
  EXPECT_EQ(refused("/ui/api/runs/" + id + "/cancel"), 405u);
  EXPECT_EQ(refused("/ui/api/events", "POST"), 405u);
  // Its listener would drop the body of a stream that never ends.
  EXPECT_EQ(refused("/ui/api/events", "HEAD"), 405u);
}

TEST(page_request, pages_of_other_sites_are_refused_where_a_browser_tells) {
  EXPECT_EQ(refused("/ui/api/state", "GET", {{"Sec-Fetch-Site", "cross-site"}}), 403u);
  EXPECT_EQ(refused("/ui/api/state", "GET", {{"Sec-Fetch-Site", "same-site"}}), 403u);
  EXPECT_EQ(refused("/ui/api/runs/" + id + "/cancel", "POST", {{"Sec-Fetch-Site", "cross-site"}}),
            403u);
  EXPECT_TRUE(read("/ui/api/state", "GET", {{"Sec-Fetch-Site", "same-origin"}}));
}

TEST(page_request, a_search) {
  auto found = read("/ui/api/ledger?kind=calls&text=a+b%26c&server=git*&tool=read_*&outcome=denied"
                    "&since=1h&until=5&skip=100&limit=50");
  ASSERT_TRUE(found);
  const auto& query = found->query;
  EXPECT_TRUE(query.calls);
  EXPECT_EQ(query.text, "a b&c");
  EXPECT_EQ(query.server, "git*");
  EXPECT_EQ(query.tool, "read_*");
  EXPECT_EQ(query.outcome, "denied");
  EXPECT_EQ(query.since, now - 3'600'000);
  EXPECT_EQ(query.until, 5);
  EXPECT_EQ(query.skip, 100u);
  EXPECT_EQ(query.limit, 50u);
  // Later pages are of what there was at the first.
  EXPECT_EQ(read("/ui/api/ledger")->query.until, now);
}

TEST(page_request, a_search_can_not_name_an_owner_and_is_bounded) {
  for (const std::string query : {"owner=eve", "limit=201", "limit=-1", "skip=x", "kind=all",
                                  "since=yesterday", "until=-5", "x=%zz", "run=aa"}) {
    EXPECT_EQ(refused("/ui/api/ledger?" + query), 400u) << query;
  }
  EXPECT_EQ(refused("/ui/api/ledger?text=" + std::string(300, 'a')), 400u);
}

std::string field(const outgoing_answer& answer, std::string_view name) {
  for (const auto& each : answer.fields) {
    if (same_name(each.name, name)) {
      return each.value;
    }
  }
  return {};
}

TEST(page_answer, the_page_may_load_and_run_only_its_own_files) {
  auto page = page_file("index.html");
  EXPECT_EQ(page.status, 200u);
  EXPECT_EQ(field(page, "Content-Type"), "text/html; charset=utf-8");
  auto policy = field(page, "Content-Security-Policy");
  for (const auto* part : {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                           "base-uri 'none'", "form-action 'none'"}) {
    EXPECT_NE(policy.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  // What the policy would keep from working.
  EXPECT_EQ(page.body.find("style="), std::string::npos);
  EXPECT_EQ(page.body.find("onclick"), std::string::npos);
  EXPECT_EQ(page.body.find("http:"), std::string::npos);
  EXPECT_EQ(page.body.find("https:"), std::string::npos);
}

TEST(page_answer, every_file_that_the_page_names_is_there) {
  for (const auto* name : {"page.js", "dom.js", "api.js", "now.js", "runs.js", "answer.js",
                           "charts.js", "ledger.js", "trial.js"}) {
    EXPECT_EQ(field(page_file(name), "Content-Type"), "text/javascript; charset=utf-8") << name;
  }
  EXPECT_EQ(field(page_file("page.css"), "Content-Type"), "text/css; charset=utf-8");
  for (const auto* name : {"", "..", "../page.js", "nothing.js", "index", "README.md"}) {
    EXPECT_EQ(page_file(name).status, 404u) << name;
  }
}

TEST(page_answer, no_text_gets_into_the_page_but_as_text) {
  for (const auto* name : {"page.js", "dom.js", "api.js", "now.js", "runs.js", "answer.js",
                           "charts.js", "ledger.js", "trial.js"}) {
    auto script = page_file(name).body;
    for (const auto* way : {"innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write",
                            "eval(", "new Function", "srcdoc"}) {
      EXPECT_EQ(script.find(way), std::string::npos) << name << " " << way;
    }
  }
}

TEST(page_answer, whatever_code_made_is_saved_and_never_shown) {
  auto head = page_download_head("<script>\"\r\n.html");
  EXPECT_EQ(field(head, "Content-Type"), "application/octet-stream");
  EXPECT_EQ(field(head, "Content-Disposition"),
            "attachment; filename*=UTF-8''%3Cscript%3E%22%0D%0A.html");
  EXPECT_EQ(field(head, "X-Content-Type-Options"), "nosniff");
  EXPECT_NE(field(head, "Content-Security-Policy").find("sandbox"), std::string::npos);
  EXPECT_EQ(field(head, "Cache-Control"), "no-store");
}

TEST(page_answer, every_answer_is_guarded) {
  for (const auto& answer :
       {page_file("index.html"), page_file("nothing"), page_moved(), page_json("{}"),
        page_refusal(404, "no"), page_stream_head(), page_download_head("x")}) {
    EXPECT_EQ(field(answer, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(field(answer, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(field(answer, "Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(field(answer, "Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_NE(field(answer, "Content-Security-Policy").find("frame-ancestors 'none'"),
              std::string::npos);
  }
}

TEST(page_answer, the_root_leads_into_the_folder_whatever_stands_before_it) {
  EXPECT_EQ(page_moved().status, 308u);
  EXPECT_EQ(field(page_moved(), "Location"), "ui/");
}

TEST(page_answer, events_and_texts_are_one_line_each) {
  shown_run run;
  run.run = id;
  run.client = "a\n\ndata: {}\x1b";
  auto text = to_json(run);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(page_event("runs", text), "event: runs\ndata: " + text + "\n\n");
}

TEST(page_answer, records_come_without_texts_unless_they_are_asked_for) {
  ledger_run run;
  run.run = id;
  run.code = {"sha", 6, "secret"};
  ledger_page page;
  page.runs = {run};
  page.more = true;
  ledger_query query;
  query.until = 7;
  auto text = ledger_json(page, query);
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_NE(text.find(R"("more":true,"until":7)"), std::string::npos);
  EXPECT_NE(to_json(run, true).find(R"("code":"secret")"), std::string::npos);
  EXPECT_NE(no_ledger_json(query).find(R"("kept":false)"), std::string::npos);
}

} // namespace
} // namespace bulkhead

#include "actors/mcp_client.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

/// Tool documents: tools/list page by page, and who waits for it.
namespace bulkhead {

namespace {

constexpr std::size_t most_pages = 100;
constexpr std::size_t most_tools = 10'000;

} // namespace

caf::result<documents_ptr> mcp_client_state::documents_for(deadline due) {
  if (told_to_stop) {
    return to_caf(errc::closed, fmt::format("{} is being stopped", subject()));
  }
  if (documents_fresh()) {
    return documents;
  }
  if (current == phase::ready && documents && !list && !list_gate.pass(now())) {
    // It says all the time that they are others.
    return documents;
  }
  auto promise = self->make_response_promise<documents_ptr>();
  waiters.push_back({promise, due.when()});
  if (current != phase::ready) {
    ensure_started();
  } else if (!list) {
    begin_listing();
  }
  arm();
  return promise;
}

bool mcp_client_state::documents_fresh() {
  return current == phase::ready && documents && !documents_changed &&
         (!documents_expire || now() < *documents_expire);
}

void mcp_client_state::begin_listing() {
  documents_changed = false;
  list.emplace();
  if (server.has_tools) {
    request_page({});
  } else {
    finish_listing({});
  }
}

void mcp_client_state::request_page(std::string_view cursor) {
  list->request = ++last_request;
  list->due = now() + entry.call_timeout;
  if (!write(upstream::encode_list(list->request, generation, cursor, abilities()))) {
    fail_listing({errc::overloaded, "no memory for the request now; try again later"});
  }
  arm();
}

void mcp_client_state::take_page(const rpc_message& answer) {
  if (!answer.error.empty()) {
    auto reason = upstream::read_failure(answer.error);
    fail_listing(
        {errc::server_failed, fmt::format("{} {}", reason.code, secrets.hide(reason.message))});
    return;
  }
  list->bytes += answer.result.size();
  if (list->bytes > env->bounds.tool_payload) {
    fail_listing({errc::too_large,
                  fmt::format("the list is over the limit of {} bytes", env->bounds.tool_payload)});
    return;
  }
  auto page = parse_tool_page(answer.result);
  if (!page) {
    fail_listing(page.error());
    return;
  }
  for (auto& tool : page->tools) {
    if (list->tools.size() < most_tools && list->names.insert(tool.name).second) {
      list->tools.push_back(std::move(tool));
    }
  }
  list->hidden += page->hidden;
  if (auto life = upstream::read_time_to_live(answer.result)) {
    list->time_to_live = std::min(*life, list->time_to_live.value_or(*life));
  }
  ++list->pages;
  if (page->next_cursor.empty()) {
    finish_listing({});
  } else if (!list->cursors.insert(page->next_cursor).second) {
    finish_listing("it repeats a cursor");
  } else if (list->pages >= most_pages || list->tools.size() >= most_tools) {
    finish_listing("it has more than 100 pages or 10,000 tools");
  } else {
    request_page(page->next_cursor);
  }
}

/// `note` tells why there may be more tools than were read.
void mcp_client_state::finish_listing(std::string_view note) {
  if (!note.empty()) {
    note_failure(
        {errc::server_failed, fmt::format("list tools of {}: {}; the first {} tools are used",
                                          subject(), note, list->tools.size())});
  }
  auto result = std::make_shared<server_documents>();
  result->server = entry.name;
  result->alias = entry.alias;
  result->description = entry.description.empty() ? server.title : entry.description;
  result->tools = std::move(list->tools);
  result->hidden = list->hidden;
  result->version = server.version;
  assign_tool_aliases(result->tools);
  if (documents_changed) {
    // While the list was being read.
    result->outdated.set();
  }
  documents = std::move(result);
  documents_expire.reset();
  if (list->time_to_live) {
    documents_expire = now() + *list->time_to_live;
  }
  list.reset();
  for (auto& waiter : std::exchange(waiters, {})) {
    waiter.promise.deliver(documents);
  }
}

void mcp_client_state::fail_listing(error reason) {
  reason.message = fmt::format("list tools of {}: {}", subject(), reason.message);
  note_failure(reason);
  list.reset();
  documents_changed = true;
  for (auto& waiter : std::exchange(waiters, {})) {
    waiter.promise.deliver(to_caf(reason));
  }
}

void mcp_client_state::expire_documents() {
  auto late = [this](documents_waiter& waiter) {
    if (waiter.due > now()) {
      return false;
    }
    auto reason =
        current == phase::ready
            ? error{errc::timeout,
                    fmt::format("list tools of {}: no answer before the deadline", subject())}
            : still_starting();
    waiter.promise.deliver(to_caf(reason));
    return true;
  };
  std::erase_if(waiters, late);
}

} // namespace bulkhead

#include "actors/web_page.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "protocol/page_answer.hpp"

namespace bulkhead {

web_page_state::web_page_state(web_page_actor::pointer self) : self{self} {}

std::int64_t web_page_state::wall_time() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             context.env->wall_clock().time_since_epoch())
      .count();
}

void web_page_state::take(http_arrival& arrival) {
  auto& to = arrival.reply;
  if (is_stopping) {
    to->answer(page_refusal(503, "the server is stopping", 5));
    return;
  }
  auto wanted = read_page_request(arrival.request, wall_time());
  if (!wanted) {
    to->answer(wanted.error());
    return;
  }
  if (wanted->wish == page_wish::root) {
    to->answer(page_moved());
    return;
  }
  if (wanted->wish == page_wish::file) {
    to->answer(page_file(wanted->name));
    return;
  }
  const auto& principal = arrival.request.principal;
  if (auto wait = context.count_request ? context.count_request(principal) : std::nullopt) {
    auto seconds = static_cast<std::uint32_t>(wait->again.count());
    to->answer(page_refusal(429, wait->why, std::max<std::uint32_t>(seconds, 1)));
    return;
  }
  if (auto of = context.tenant(principal)) {
    dispatch(*wanted, principal, of, to);
  } else {
    to->answer(page_refusal(403, "there is nothing to see for this token"));
  }
}

void web_page_state::dispatch(const page_request& wanted, const std::string& principal,
                              const page_context_ptr& of, const io::http_reply_ptr& to) {
  switch (wanted.wish) {
  case page_wish::snapshot:
    give_snapshot(principal, *of, to);
    break;
  case page_wish::events:
    add_reader(principal, *of, to);
    break;
  case page_wish::ledger:
    read_ledger(principal, *of, wanted.query, to);
    break;
  case page_wish::run:
    read_run(principal, *of, wanted.run, to);
    break;
  case page_wish::cancel:
    cancel(*of, wanted.run, *to);
    break;
  case page_wish::thing:
    begin_download(principal, of, wanted.what, to);
    break;
  case page_wish::root:
  case page_wish::file:
    break; // answered before
  }
}

/// A run of another tenant, one that is over and one that never was are all alike.
void web_page_state::cancel(const page_context& of, const std::string& run,
                            io::http_reply& to) const {
  if (of.book->cancel(run)) {
    of.env->log->info("run {}: is cancelled on the web page", run);
    to.answer(page_json(R"({"cancelling":true})", 202));
  } else {
    to.answer(page_refusal(404, "no such run goes on (any more)"));
  }
}

/// False, and answered, when the principal has enough under way.
bool web_page_state::begin_work(const std::string& principal, io::http_reply& to) {
  auto& count = work[principal];
  if (count >= context.allowance.requests) {
    to.answer(page_refusal(429, "too many requests of this tenant are under way; try again", 1));
    return false;
  }
  ++count;
  return true;
}

void web_page_state::end_work(const std::string& principal) {
  auto found = work.find(principal);
  if (found != work.end() && --found->second == 0) {
    work.erase(found);
  }
}

caf::ok_atom web_page_state::stop() {
  is_stopping = true;
  for (auto& [number, each] : std::exchange(readers, {})) {
    each.to->end();
  }
  for (auto& [principal, each] : views) {
    for (const auto& to : std::exchange(each.waiting, {})) {
      to->answer(page_refusal(503, "the server is stopping", 5));
    }
  }
  self->quit();
  return caf::ok_atom::value;
}

web_page_actor::behavior_type web_page_state::make_behavior() {
  return {
      [this](http_arrival& arrival) { take(arrival); },
      [this](end_atom, std::uint64_t number) { readers.erase(number); },
      [this](tick_atom) { tick(); },
      [this](tick_atom, std::uint64_t number) { next_part(number); },
      [this](stop_atom) { return stop(); },
  };
}

web_page_actor::behavior_type web_page(web_page_actor::stateful_pointer<web_page_state> self,
                                       web_page_context context) {
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

std::vector<http_page> web_pages() {
  return {{std::string{page_root}, {"GET"}, false},
          {std::string{page_folder}, {"GET"}, false},
          {std::string{page_api}, {"GET", "POST"}, true}};
}

std::function<void(incoming_request, memory_budget::share, io::http_reply_ptr)>
page_requests_to(const web_page_actor& to) {
  return [to](incoming_request request, memory_budget::share held, io::http_reply_ptr reply) {
    http_arrival arrival;
    arrival.request = std::move(request);
    arrival.held = std::make_shared<memory_budget::share>(std::move(held));
    arrival.reply = std::move(reply);
    caf::anon_send(to, std::move(arrival));
  };
}

} // namespace bulkhead

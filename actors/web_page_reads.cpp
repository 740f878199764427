// What is kept: the ledger's records, one run, and things to be saved.

#include "actors/web_page.hpp"

#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "protocol/json_text.hpp"
#include "protocol/page_answer.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

/// For a search through a large ledger, or a slow disk.
constexpr seconds store_patience{20};
/// Until it is looked again whether a reader has taken what was sent.
constexpr std::chrono::milliseconds download_pause{50};
/// Of a run's tool calls, the newest.
constexpr std::uint64_t shown_calls = 200;

outgoing_answer failed_read(const caf::error& cause, std::string_view what) {
  auto reason = from_caf(cause, what);
  return reason.code == errc::not_found ? page_refusal(404, "there is no such thing (any more)")
                                        : page_refusal(503, reason.message, 5);
}

std::string calls_json(const ledger_page& page) {
  std::vector<std::string> all;
  for (const auto& each : page.calls) {
    all.push_back(to_json(each, true));
  }
  return json_list(all);
}

using members = std::vector<std::pair<std::string_view, std::string>>;

members known_of(const std::optional<run_book::details>& found) {
  members known;
  if (found) {
    known.emplace_back("now", to_json(found->run));
    if (!found->answer.empty()) {
      known.emplace_back("answer", found->answer);
    }
    known.emplace_back("live", json_quote(found->live));
  }
  return known;
}

void answer_run(io::http_reply& to, const members& known) {
  to.answer(known.empty() ? page_refusal(404, "there is no such run (any more)")
                          : page_json(json_object(known)));
}

} // namespace

void web_page_state::read_ledger(const std::string& principal, const page_context& of,
                                 ledger_query query, io::http_reply_ptr to) {
  query.owner = of.owner;
  auto ledger = of.ledger();
  if (!ledger) {
    to->answer(page_json(no_ledger_json(query)));
    return;
  }
  if (!begin_work(principal, *to)) {
    return;
  }
  self->request(ledger, store_patience, read_atom::value, query)
      .then(
          [this, principal, query, to](const ledger_page& page) {
            to->answer(page_json(ledger_json(page, query)));
            end_work(principal);
          },
          [this, principal, to](const caf::error& cause) {
            to->answer(failed_read(cause, "read the ledger"));
            end_work(principal);
          });
}

void web_page_state::read_run(const std::string& principal, const page_context& of,
                              const std::string& run, const io::http_reply_ptr& to) {
  auto known = known_of(of.book->find(run));
  auto ledger = of.ledger();
  if (!ledger) {
    answer_run(*to, known);
    return;
  }
  if (!begin_work(principal, *to)) {
    return;
  }
  ledger_query query;
  query.owner = of.owner;
  query.run = run;
  query.limit = 1;
  auto calls = query;
  calls.calls = true;
  calls.limit = shown_calls;
  auto done = [this, principal, to](const members& all) {
    answer_run(*to, all);
    end_work(principal);
  };
  self->request(ledger, store_patience, read_atom::value, query)
      .then(
          [this, ledger, calls, known, done](const ledger_page& page) mutable {
            if (!page.runs.empty()) {
              known.emplace_back("record", to_json(page.runs.front(), true));
            }
            self->request(ledger, store_patience, read_atom::value, calls)
                .then(
                    [known, done](const ledger_page& found) mutable {
                      if (!found.calls.empty()) {
                        known.emplace_back("calls", calls_json(found));
                      }
                      done(known);
                    },
                    [known, done](const caf::error&) { done(known); });
          },
          [known, done](const caf::error&) {
            // What is known without it is better than nothing.
            done(known);
          });
}

void web_page_state::begin_download(const std::string& principal, const page_context_ptr& of,
                                    const resource_uri& what, io::http_reply_ptr to) {
  if (!begin_work(principal, *to)) {
    return;
  }
  auto number = ++last_number;
  downloads[number] = {principal, of, what, std::move(to), false};
  next_part(number);
}

void web_page_state::end_download(std::uint64_t number) {
  if (auto ended = downloads.extract(number)) {
    end_work(ended.mapped().principal);
  }
}

void web_page_state::next_part(std::uint64_t number) {
  auto found = downloads.find(number);
  if (found == downloads.end()) {
    return;
  }
  auto& which = found->second;
  if (which.to->gone()) {
    end_download(number);
    return;
  }
  if (which.to->unsent() > context.allowance.unsent) {
    self->delayed_send(self, download_pause, tick_atom::value, number);
    return;
  }
  self->request(which.from->store(), store_patience, read_atom::value,
                resource_range{which.from->owner, which.what})
      .then([this, number](resource_part& part) { take_part(number, std::move(part)); },
            [this, number](const caf::error& cause) {
              auto found = downloads.find(number);
              if (found != downloads.end() && !found->second.begun) {
                found->second.to->answer(failed_read(cause, "read it"));
              }
              // The connection of one that has begun breaks.
              end_download(number);
            });
}

void web_page_state::take_part(std::uint64_t number, resource_part part) {
  auto found = downloads.find(number);
  if (found == downloads.end()) {
    return;
  }
  auto& which = found->second;
  const auto& what = which.what;
  auto head = page_download_head(what.stream ? std::string{to_string(*what.stream)} + ".txt"
                                             : what.artifact);
  which.what.offset += part.bytes.size();
  bool last = which.what.offset >= part.kept;
  if (part.bytes.empty() && !last) {
    // It went while it was read: a broken connection, so that nobody takes it for whole.
    end_download(number);
    return;
  }
  if (last && !which.begun) {
    head.body = std::move(part.bytes);
    which.to->answer(std::move(head));
    end_download(number);
    return;
  }
  if (!std::exchange(which.begun, true)) {
    which.to->begin(std::move(head));
  }
  which.to->write(std::move(part.bytes));
  if (last) {
    which.to->end();
    end_download(number);
    return;
  }
  next_part(number);
}

} // namespace bulkhead

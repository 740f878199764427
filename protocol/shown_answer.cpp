#include "protocol/shown_answer.hpp"

#include <algorithm>

#include "protocol/limits.hpp"

namespace bulkhead {

namespace {

/// What a result, and in proportion a traceback and messages, may take while there is room.
constexpr std::size_t generous_parts = 16 * kibibyte;

/// How closely, in bytes, streams are fitted into their room; each halving costs a rendering.
constexpr std::size_t stream_step = 128;

std::string cut_text(const std::string& text, std::size_t capacity) {
  const captured_stream whole{text, {}, text.size(), 0};
  return text.size() <= capacity ? text : whole.shortened(capacity).text();
}

/// A JSON value can't be cut and stay one, so one that is too long gives way to its repr.
void cut_result(shown_answer& shown, std::size_t json_limit, std::size_t repr_limit) {
  auto& run = shown.run;
  if (run.result_json && run.result_json->size() > json_limit) {
    shown.result_total = run.result_json->size();
    shown.result_omitted = shown.result_total;
    run.result_json.reset();
  }
  if (!run.result_repr || run.result_repr->size() <= repr_limit) {
    return;
  }
  if (!run.result_json && shown.result_total == 0) {
    shown.result_total = run.result_repr->size();
    shown.result_omitted = run.result_repr->size() - repr_limit;
  }
  run.result_repr = cut_text(*run.result_repr, repr_limit);
}

shown_answer with_parts(const run_answer& run, std::size_t limit) {
  shown_answer shown{run, 0, 0};
  cut_result(shown, limit, limit / 4);
  if (auto& exception = shown.run.exception) {
    exception->type = cut_text(exception->type, limit / 16);
    exception->message = cut_text(exception->message, limit / 4);
    exception->traceback = cut_text(exception->traceback, limit / 2);
  }
  if (auto& failure = shown.run.failure) {
    failure->message = cut_text(failure->message, limit / 4);
  }
  return shown;
}

shown_answer with_streams(shown_answer shown, std::size_t capacity) {
  shown.run.out = shown.run.out.shortened(capacity);
  shown.run.err = shown.run.err.shortened(capacity);
  return shown;
}

std::size_t longest_stream(const run_answer& run) {
  return std::max(run.out.head.size() + run.out.tail.size(),
                  run.err.head.size() + run.err.tail.size());
}

} // namespace

std::string render_within(const run_answer& run, std::size_t budget,
                          const answer_notation& notation) {
  auto parts = generous_parts;
  auto shown = with_parts(run, parts);
  while (parts > 0 && notation(with_streams(shown, 0)).size() > budget) {
    parts /= 2;
    shown = with_parts(run, parts);
  }
  auto text = notation(shown);
  if (text.size() <= budget) {
    return text;
  }
  std::size_t fits = 0;
  for (auto over = longest_stream(run); over - fits > stream_step;) {
    const auto capacity = fits + (over - fits) / 2;
    (notation(with_streams(shown, capacity)).size() <= budget ? fits : over) = capacity;
  }
  return notation(with_streams(shown, fits));
}

} // namespace bulkhead

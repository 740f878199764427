#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "protocol/run_answer.hpp"

namespace bulkhead {

/// What an answer shows of a run: the run with its parts cut to a size, and what that left out of
/// the result.
struct shown_answer {
  run_answer run;
  std::uint64_t result_total = 0;   ///< bytes of the whole result; 0 when it is shown whole
  std::uint64_t result_omitted = 0; ///< bytes of it that are not shown
};

/// How a shown answer reads in some notation.
using answer_notation = std::function<std::string(const shown_answer&)>;

/// As much of `run` as fits in `budget` bytes of `notation`. Parts give way in the order that
/// `render_call_result` documents; what can't be cut (server names) may exceed a tiny budget.
std::string render_within(const run_answer& run, std::size_t budget,
                          const answer_notation& notation);

} // namespace bulkhead

#pragma once

#include <string>

#include "protocol/run_answer.hpp"

namespace bulkhead {

/// The parts of an answer that tell of artifacts and of output that is kept outside of it. Entries
/// take at most 12 KiB, in the order of the artifacts; the others are counted.

/// The entries of the artifacts, a JSON array; empty when there are none.
std::string artifacts_json(const run_answer& run);

/// {notShown, lost, why}: how many are kept and have no entry, how many aren't kept, and why. Empty
/// when all have one.
std::string missing_artifacts_json(const run_answer& run);

/// Lines for people and models, without an end of the last: what is kept of streams that `run`
/// shows in part, the artifacts, and what was lost.
std::string kept_text(const run_answer& run);

/// Content blocks, JSON texts with a comma before each: the images, then, if `links`, resource
/// links to the other artifacts that have an entry.
std::string artifact_blocks(const run_answer& run, bool links);

} // namespace bulkhead

#include "protocol/run_python.hpp"

#include <fmt/format.h>

#include "protocol/run_answer.hpp"

namespace bulkhead {

namespace {

std::string statuses() {
  std::string names;
  for (auto status :
       {run_status::success, run_status::error, run_status::timeout, run_status::out_of_memory,
        run_status::cancelled, run_status::validation_error, run_status::unavailable,
        run_status::session_lost}) {
    names += fmt::format(R"({}"{}")", names.empty() ? "" : ",", to_string(status));
  }
  return names;
}

constexpr std::string_view cut =
    R"({"type":"object","properties":{"totalBytes":{"type":"integer"},)"
    R"("omittedBytes":{"type":"integer"},"uri":{"type":"string"},)"
    R"("keptBytes":{"type":"integer"},"notKept":{"type":"string"}}})";

} // namespace

// What isn't there is left out, so that little is required.
std::string run_python_output_schema() {
  return fmt::format(
      R"({{"type":"object","properties":{{"status":{{"type":"string","enum":[{}]}},)"
      R"("exitCode":{{"type":"integer"}},"stdout":{{"type":"string"}},)"
      R"("stderr":{{"type":"string"}},)"
      R"("result":{{"description":"The last expression's value; its repr where it is no JSON"}},)"
      R"("error":{{"type":"object","properties":{{"code":{{"type":"string"}},)"
      R"("message":{{"type":"string"}},"type":{{"type":"string"}},)"
      R"("traceback":{{"type":"string"}}}}}},)"
      R"("servers":{{"type":"array","items":{{"type":"string"}},)"
      R"("description":"Those that the code could call"}},)"
      R"("session":{{"type":"string","description":"Pass it to go on in this interpreter"}},)"
      R"("durationMs":{{"type":"integer","minimum":0}},)"
      R"("truncated":{{"type":"object","description":"What is left out",)"
      R"("properties":{{"stdout":{},"stderr":{},"result":{},)"
      R"("artifacts":{{"type":"object"}}}}}},)"
      R"("artifacts":{{"type":"array","items":{{"type":"object",)"
      R"("properties":{{"name":{{"type":"string"}},"mimeType":{{"type":"string"}},)"
      R"("bytes":{{"type":"integer","minimum":0}},"uri":{{"type":"string"}}}},)"
      R"("required":["name"]}}}}}},"required":["status","durationMs"]}})",
      statuses(), cut, cut, cut);
}

} // namespace bulkhead

#pragma once

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/served_things.hpp"

namespace bulkhead::conformance {

/// What the conformance suite's fixtures are made of.

using nlohmann::json;

/// A tool or a prompt.
struct fixture {
  std::string_view name;
  std::string_view description;
  std::string_view schema; ///< of a tool's arguments; of a prompt, the list of its arguments
  served_step (*next)(const served_call& call);
};

/// All tools (conformance_tools.cpp).
std::span<const fixture> tools();

/// One red pixel (PNG).
inline constexpr std::string_view pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg==";

// Blocks of content.

json text_block(std::string_view text);
json image_block(); ///< the pixel
json resource_block(std::string_view uri, std::string_view mime_type, std::string_view text);

// Steps: the last ones of a tool (blocks, or a text) and of a prompt, and those on the way.

served_step content(const json& blocks, bool failed = false);
served_step says(std::string_view text);
served_step messages(std::initializer_list<json> contents);
served_step logs(std::string_view text, std::chrono::milliseconds pause = {});
served_step progresses(std::uint32_t done, std::chrono::milliseconds pause);
served_step changes(served_step::list which);

// Questions for the client: forms, with the properties of their schema; its model; its roots.

input_request form(std::string_view key, std::string_view message, json properties,
                   json required = json::array());
input_request text_form(std::string_view key, std::string_view message, const char* field);
input_request confirmation();
input_request sampling(std::string_view key, std::string_view prompt);
input_request roots(std::string_view key);

/// The questions that have neither been answered nor refused; a call that has all goes on.
std::vector<input_request> open_questions(const served_call& call,
                                          std::vector<input_request> questions);

/// What came of a question, for people.
std::string outcome(const served_call& call, std::string_view key);

/// Asks, then says what came of it, behind a prefix.
served_step asks(const served_call& call, const std::vector<input_request>& questions,
                 std::string_view prefix);

/// An argument of the call that is a string; empty for others.
std::string argument(const served_call& call, std::string_view name);

} // namespace bulkhead::conformance

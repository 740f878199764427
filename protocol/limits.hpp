#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bulkhead {

inline constexpr std::size_t kibibyte = 1024;
inline constexpr std::size_t mebibyte = 1024 * kibibyte;

/// Bounds on everything that crosses a trust boundary. Exceeding one is a typed error, never
/// silence.
struct limits {
  /// A JSON text's nesting; deeper texts overflow stacks.
  std::size_t json_depth = 64;
  /// Values and keys in one JSON text; a DOM costs some 30 bytes a node and more.
  std::size_t json_nodes = 100'000;
  /// Frames that carry neither output nor tool data, in bytes.
  std::size_t control_frame = 64 * kibibyte;
  /// One stdout or stderr frame as it travels, in bytes.
  std::size_t output_frame = 256 * kibibyte;
  /// One tool call's arguments or its result, in bytes.
  std::size_t tool_payload = 16 * mebibyte;
  /// One line on a frame channel or from a server: a payload and its envelope, in bytes.
  std::size_t line = 16 * mebibyte + 64 * kibibyte;
  /// The code of one run, in bytes.
  std::size_t code = 4 * mebibyte;
  /// Bytes read from one child that its owner hasn't taken yet; then reading stops.
  std::size_t read_ahead = 4 * mebibyte;
  /// Bytes handed to the kernel's side of one child's input before more are held back.
  std::size_t write_ahead = 4 * mebibyte;
  /// All bytes held for children, runs and answers together.
  std::size_t memory_budget = 256 * mebibyte;
  /// Tool calls of one run on the way at once; more wait in the guest.
  std::uint32_t calls_in_flight = 32;
  /// Questions about tools (lists, documents, searches) of one run worked on at once; its others
  /// wait their turn, so that one run doesn't keep the rest waiting.
  std::uint32_t questions_in_flight = 4;
  /// Results and documents held for one run that its code hasn't read, with its calls' arguments,
  /// in bytes; a call whose result finds no room fails. As much again is for copies on their way.
  std::size_t run_memory = 64 * mebibyte;
  /// Calls that wait for a place at one upstream server; one more is refused as overloaded.
  std::uint32_t calls_waiting = 256;
  /// What a server asks of the client in the middle of a call, and its answer, in bytes each.
  std::size_t question = mebibyte;
  /// How many questions a call may ask, and how often a modern server may ask for more input.
  std::uint32_t call_questions = 32;
  std::uint32_t input_rounds = 10;
  /// How long the clock of a run stands still in all while its client is asked.
  std::chrono::seconds question_time{300};
  /// Runs that wait for admission; one more is refused as overloaded.
  std::uint32_t admission_queue = 64;
  /// What an answer shows of one stream (head and tail together), in bytes.
  std::size_t answer_stream = 16 * kibibyte;
  /// What an answer shows of all, in bytes.
  std::size_t answer_total = 64 * kibibyte;
  /// One artifact of a run, all of its artifacts (both in bytes), and how many a run may have.
  std::size_t artifact = 12 * mebibyte;
  std::size_t artifacts = 64 * mebibyte;
  std::uint32_t artifact_count = 64;
  /// Images that an answer shows by themselves: one, all of them (both in bytes), and how many.
  std::size_t image = 256 * kibibyte;
  std::size_t images = 512 * kibibyte;
  std::uint32_t image_count = 4;
  /// Files that a call may bring along, and the bytes of them all.
  std::size_t input_files = 64;
  std::size_t input_bytes = 8 * mebibyte;
  /// What one read of a resource gives, in bytes.
  std::size_t resource_part = mebibyte;
  /// The stderr tail kept of one child for error texts, in bytes.
  std::size_t stderr_tail = 4 * kibibyte;
};

} // namespace bulkhead

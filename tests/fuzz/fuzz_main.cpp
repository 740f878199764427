#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz.hpp"

/// What libFuzzer calls; BULKHEAD_FUZZ_TARGET is the name of a target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  bulkhead::fuzz::BULKHEAD_FUZZ_TARGET({reinterpret_cast<const char*>(bytes), size});
  return 0;
}

// The runner of all actor suites: CAF's own, whose macros the suites use.
#define CAF_TEST_NO_MAIN

#include "caf/test/unit_test_impl.hpp"

int main(int argc, char** argv) {
  return caf::test::main(argc, argv);
}

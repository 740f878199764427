#include "main/commands.hpp"
namespace bulkhead{ int run_doctor(application&, stop_signal&, const command_line&, int){return 1;} }

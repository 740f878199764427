#pragma once

#include <string>

namespace bulkhead {

/// Opens an http or https URL in the user's browser: the program that BROWSER names, else xdg-open
/// or, on macOS, open. No shell has a part in it. False when there is no such program or, BROWSER
/// apart, no screen to show a page on.
bool open_browser(const std::string& url);

} // namespace bulkhead

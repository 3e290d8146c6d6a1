#pragma once
// How a verb waits for packets: Ctrl-C ends them, and a line on the terminal says how many flows are through.

#include <memory>
#include <string>

#include "models/fabric/fabric.h"

namespace railyard {

// May be called from any thread. "label [####    ] 12/30, 3 s left".
WindowObserver terminal_observer(const std::string& label = "flows");

// Remembers the packet windows of a verb, and is watched so while it runs them.
std::shared_ptr<WindowCache> watched_windows();

}  // namespace railyard

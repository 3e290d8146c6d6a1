#pragma once
// How a verb waits for packets: Ctrl-C ends them, and a line on the terminal says how many flows are through.

#include "models/fabric/fabric.h"

namespace railyard {

// May be called from any thread.
WindowObserver terminal_observer();

}  // namespace railyard

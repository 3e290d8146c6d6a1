#include "tools/cli/terminal_observer.h"

#include <optional>

#include "tools/cli/terminal.h"
#include "tools/program/program.h"

namespace railyard {

WindowObserver terminal_observer(const std::string& label) {
    const auto progress = [label](std::int64_t ended, std::int64_t flows) {
        thread_local std::optional<Progress> line;  // of the window that this thread runs
        if (ended == flows) {
            line.reset();
        } else {
            if (!line) line.emplace(label);
            line->update(ended, flows);
        }
    };
    return {&interrupted(), progress};
}

std::shared_ptr<WindowCache> watched_windows() {
    return std::make_shared<WindowCache>(terminal_observer());
}

}  // namespace railyard

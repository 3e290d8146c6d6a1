#include "models/scheduler/fleet_progress.h"

#include <algorithm>

namespace railyard {

RunProgress RunPlan::after(Duration elapsed) const {
    RunProgress out;
    const auto spend = [&elapsed](Duration most) {
        const Duration spent = std::min(elapsed, most);
        elapsed -= spent;
        return spent;
    };
    out.prolog = spend(prolog);
    out.restart = spend(restart);
    out.restore = spend(restore);
    if (stalls() > 0) {
        const Duration work = step * interval;
        const std::int64_t cycles = std::min(elapsed / (work + stall), stalls());
        out.steps = out.saved = cycles * interval;
        out.stall = stall * cycles;
        elapsed -= (work + stall) * cycles;
        if (cycles < stalls() && elapsed >= work) {  // a checkpoint is being written
            out.steps += interval;
            out.stall += elapsed - work;
            return out;
        }
    }
    const std::int64_t more = std::min(elapsed / step, steps - out.steps);
    out.steps += more;
    out.partial = elapsed - step * more;
    if (out.steps == steps) out.saved = steps;  // done: it leaves its result
    return out;
}

}  // namespace railyard

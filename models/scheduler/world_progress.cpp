#include "models/scheduler/world_progress.h"

#include <algorithm>

#include "sim/integers.h"

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
    out.first_batch = spend(first_batch);
    elapsed += step * done + stalled;  // as if they were of this plan
    out.stall = -stalled;
    const std::int64_t all = done + steps;
    if (stalls() > 0) {
        const Duration work = step * interval;
        const std::int64_t cycles = std::min(elapsed / (work + stall), stalls());
        out.steps = out.saved = cycles * interval;
        out.any_saved = cycles > 0;
        out.stall += stall * cycles;
        elapsed -= (work + stall) * cycles;
        if (cycles < stalls() && elapsed >= work) {  // a checkpoint is being written
            out.steps += interval - done;
            out.saved = std::max<std::int64_t>(out.saved - done, 0);
            out.stall += elapsed - work;
            out.saving = true;
            return out;
        }
    }
    const std::int64_t more = std::min(elapsed / step, all - out.steps);
    out.steps += more;
    elapsed -= step * more;
    const bool at_the_end = out.steps == all;
    (at_the_end ? out.stall : out.partial) += elapsed;
    out.saving = at_the_end && last_stall > Duration{};
    if (at_the_end && steps > 0 && ends_safe) {  // done: it leaves its result
        out.saved = all;
        out.any_saved = true;
    }
    out.steps -= done;
    out.saved = std::max<std::int64_t>(out.saved - done, 0);
    return out;
}

Duration RunPlan::finish_after() const {
    const bool waits = std::max({restore, first_batch, last_stall}) >= open_ended;
    if (stands_still || waits) return Duration::max();
    using Wide = __int128;
    const Wide work = Wide{step.count()} * steps + Wide{stall.count()} * stalls();
    const Wide all = work + (setup() - stalled + last_stall).count();
    return Duration(static_cast<Duration::rep>(std::min<Wide>(all, Duration::max().count())));
}

RunPlan RunPlan::rest_after(Duration elapsed) const {
    const RunProgress p = after(elapsed);
    RunPlan rest = *this;
    rest.prolog -= p.prolog;
    rest.restart -= p.restart;
    rest.restore -= p.restore;
    rest.first_batch -= p.first_batch;
    rest.steps -= p.steps;
    if (interval > 0) rest.done = p.saving ? interval : (done + p.steps) % interval;
    rest.stalled = {};
    return rest;
}

Duration RunPlan::boundary_after(Duration elapsed) const {
    const Duration into = elapsed - setup() + step * done + stalled;
    const Duration cycle = step * interval + stall;
    const std::int64_t cycles = stalls() > 0 ? std::min(into / cycle, stalls()) : 0;
    const std::int64_t begun = ceil_div((into - cycle * cycles).count(), step.count());
    const bool stalls_then = cycles < stalls() && begun >= interval;
    const Duration end = stalls_then ? cycle * (cycles + 1) : cycle * cycles + step * begun;
    return end + setup() - step * done - stalled;
}

}  // namespace railyard

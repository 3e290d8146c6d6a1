#include "models/fabric/entropy.h"

#include <bit>

#include "models/fabric/ring.h"
#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// All values of the pool in turn, in an order that a random mask gives: another in each round.
class Rounds {
  public:
    explicit Rounds(const EntropySpec& spec) : values_(spec.values) {}

    std::uint16_t value() const { return static_cast<std::uint16_t>(at_ ^ mask_); }
    void begin(RandomStream& random) { mask_ = draw(random); }
    void advance(RandomStream& random) {
        if (++at_ < values_) return;
        at_ = 0;
        begin(random);
    }

  private:
    std::uint32_t draw(RandomStream& random) const {
        return static_cast<std::uint32_t>(random.below(values_));
    }
    std::uint32_t values_;
    std::uint32_t at_ = 0;
    std::uint32_t mask_ = 0;
};

class Oblivious final : public EntropyChoice {
  public:
    explicit Oblivious(const EntropySpec& spec)
        : spec_(spec), random_(spec.seed, 0, "packet/entropy") {}

    void start(std::uint32_t flow) override {
        if (flow >= flows_.size()) flows_.resize(flow + 1, Rounds(spec_));
        flows_[flow].begin(random_);
    }
    std::uint16_t next(std::uint32_t flow, Picoseconds) override {
        const std::uint16_t value = flows_[flow].value();
        flows_[flow].advance(random_);
        return value;
    }
    void heard(std::uint32_t, std::uint16_t, PathNews, Picoseconds) override {}

  private:
    EntropySpec spec_;
    RandomStream random_;
    std::vector<Rounds> flows_;
};

// In turn, but a value that has had bad news is passed over. Each packet takes one penalty point off the
// first that it passes over.
class Bitmap final : public EntropyChoice {
  public:
    explicit Bitmap(const EntropySpec& spec)
        : spec_(spec), random_(spec.seed, 0, "packet/entropy") {}

    void start(std::uint32_t flow) override {
        if (flow >= flows_.size()) flows_.resize(flow + 1, State{Rounds(spec_), {}});
        State& s = flows_[flow];
        s.rounds.begin(random_);
        s.penalties.assign(spec_.values, 0);
    }
    std::uint16_t next(std::uint32_t flow, Picoseconds) override {
        State& s = flows_[flow];
        bool forgiven = false;
        for (std::uint32_t tries = 0; tries < spec_.values; ++tries) {
            std::uint8_t& penalty = s.penalties[s.rounds.value()];
            if (penalty == 0) break;
            if (!forgiven) --penalty;
            forgiven = true;
            s.rounds.advance(random_);
        }
        const std::uint16_t value = s.rounds.value();
        s.rounds.advance(random_);
        return value;
    }
    void heard(std::uint32_t flow, std::uint16_t value, PathNews news, Picoseconds) override {
        constexpr unsigned of_mark = 1;
        constexpr unsigned of_trim = 4;
        constexpr unsigned most = 15;
        const unsigned more = news == PathNews::good      ? 0
                              : news == PathNews::marked  ? of_mark
                              : news == PathNews::trimmed ? of_trim
                                                          : most;
        std::uint8_t& penalty = flows_[flow].penalties[value];
        penalty = static_cast<std::uint8_t>(std::min(penalty + more, most));
    }

  private:
    struct State {
        Rounds rounds;
        std::vector<std::uint8_t> penalties;
    };
    EntropySpec spec_;
    RandomStream random_;
    std::vector<State> flows_;
};

// What came back good is used once more; the bitmap where nothing has.
class Mixed final : public EntropyChoice {
  public:
    explicit Mixed(const EntropySpec& spec) : bitmap_(spec) {}

    void start(std::uint32_t flow) override {
        if (flow >= good_.size()) good_.resize(flow + 1);
        good_[flow] = {};
        bitmap_.start(flow);
    }
    std::uint16_t next(std::uint32_t flow, Picoseconds now) override {
        if (good_[flow].empty()) return bitmap_.next(flow, now);
        const std::uint16_t value = good_[flow].first();
        good_[flow].pop();
        return value;
    }
    void heard(std::uint32_t flow, std::uint16_t value, PathNews news, Picoseconds now) override {
        if (news == PathNews::good) return good_[flow].push(value);
        bitmap_.heard(flow, value, news, now);
    }

  private:
    Bitmap bitmap_;
    std::vector<Ring<std::uint16_t, 8>> good_;  // in the order in which they came back
};

// REPS (Bonato et al., arXiv 2407.21625): the last eight good values, each used once, the oldest first; else
// any. After a timeout it explores no more for a while: paths may be dead, and the eight were not.
class Reps final : public EntropyChoice {
  public:
    explicit Reps(const EntropySpec& spec) : spec_(spec), random_(spec.seed, 0, "packet/entropy") {}

    void start(std::uint32_t flow) override {
        if (flow >= flows_.size()) flows_.resize(flow + 1);
        flows_[flow] = {};
    }
    std::uint16_t next(std::uint32_t flow, Picoseconds now) override {
        State& s = flows_[flow];
        if (s.frozen && now >= s.frozen_until) {
            s.frozen = false;
            s.explore = after_freeze;
        }
        if (s.explore > 0) {
            --s.explore;
            return any();
        }
        if (s.fresh > 0) return s.ring[(s.head - s.fresh--) % places];
        if (s.frozen && s.head > 0) return s.ring[s.replay++ % std::min(s.head, places)];
        return any();
    }
    void heard(std::uint32_t flow, std::uint16_t value, PathNews news, Picoseconds now) override {
        State& s = flows_[flow];
        if (news == PathNews::timed_out && !s.frozen) {
            s.frozen = true;
            s.frozen_until = now + freeze;
        }
        if (news != PathNews::good) return;
        s.ring[s.head++ % places] = value;
        s.fresh = std::min(s.fresh + 1, places);
    }

  private:
    static constexpr std::uint32_t places = 8;
    static constexpr std::uint32_t after_freeze = 16;
    static constexpr Picoseconds freeze = std::chrono::milliseconds(10);
    struct State {
        std::uint16_t ring[places] = {};
        std::uint32_t head = 0;   // values put in, ever
        std::uint32_t fresh = 0;  // of the last of them, those not used
        std::uint32_t replay = 0;
        std::uint32_t explore = 0;
        bool frozen = false;
        Picoseconds frozen_until{};
    };
    std::uint16_t any() { return static_cast<std::uint16_t>(random_.below(spec_.values)); }

    EntropySpec spec_;
    RandomStream random_;
    std::vector<State> flows_;
};

template <class Choice>
std::unique_ptr<EntropyChoice> made(const EntropySpec& spec) {
    return std::make_unique<Choice>(spec);
}

}  // namespace

const std::vector<EntropyKind>& entropy_kinds() {
    static const std::vector<EntropyKind> kinds = {
        {"mixed", "values that came back unmarked once more, else by bitmap", made<Mixed>},
        {"bitmap", "all in turn but those marked or trimmed of late", made<Bitmap>},
        {"reps", "the last eight that came back unmarked once more, else any (REPS)", made<Reps>},
        {"oblivious", "all in turn, whatever comes back", made<Oblivious>},
    };
    return kinds;
}

std::unique_ptr<EntropyChoice> make_entropy_choice(const EntropySpec& spec) {
    RY_CHECK(std::has_single_bit(spec.values) && spec.values <= 1U << 16);
    for (const EntropyKind& kind : entropy_kinds()) {
        if (kind.name == spec.choice) return kind.make(spec);
    }
    RY_UNREACHABLE("an entropy choice that the scenario's reader would have refused");
}

}  // namespace railyard

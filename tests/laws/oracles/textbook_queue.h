#pragma once
// Queues that textbooks solve, as job streams: jobs of one GPU on c GPUs, from random arrivals and services.

#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/scheduler.h"
#include "sim/rng.h"

namespace railyard {

// A distribution of service times with mean 1, by the table's words for it.
class Service {
  public:
    static std::optional<Service> named(const std::string& text);
    double draw(RandomStream& random) const;
    // Whether what is left of one is as long as a whole one, however long it has taken.
    bool memoryless() const { return kind_ == Kind::exponential; }

  private:
    enum class Kind : std::uint8_t {
        deterministic,
        exponential,
        erlang,
        hyperexponential,
        lognormal
    };
    Service(Kind kind, double parameter) : kind_(kind), parameter_(parameter) {}

    Kind kind_;
    double parameter_;  // an Erlang's phases, else the squared coefficient of variation
};

struct TextbookQueue {
    std::int64_t servers = 1;
    std::vector<double> loads;  // of each class, the first the highest; their sum is rho
    std::optional<Service> service = {};
    bool loses = false;   // who finds no server free is lost
    bool shared = false;  // all at once have equal shares of the one server

    double rho() const;
    Rate arrivals() const { return Rate{rho() * static_cast<double>(servers)}; }
    StreamRules rules() const;
};

}  // namespace railyard

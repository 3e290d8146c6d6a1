#include "models/campaign/injections.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/domains.h"
#include "models/campaign/network_faults.h"

namespace railyard {

namespace {

// The cause of this name: the scenario's, or one of the catalogue's, which then strikes only when injected.
std::size_t cause_of(const std::string& name, Catalogue& catalogue, Scenario& s) {
    const auto known = std::ranges::find(s.causes, name, &FailureCause::name);
    const auto index = static_cast<std::size_t>(known - s.causes.begin());
    if (known == s.causes.end()) s.causes.push_back(read_failure_cause(catalogue, name));
    return index;
}

}  // namespace

void read_injections(Section& top, Catalogue& catalogue, Scenario& s) {
    std::vector<std::string> names;
    for (const FailureCause& cause : s.causes) names.push_back(cause.name);
    for (const std::string& name : Catalogue::names("failure_response")) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (top.describing()) names.clear();  // a scenario names its own
    for (Section& section : top.sections("inject", "A failure at a known time")) {
        InjectedStrike strike;
        std::string cause;
        section.read("at", strike.at, "When, from the campaign's start",
                     {.bound = Bound::non_negative, .required = true});
        section.name("cause", cause, names, "a cause of [failures] or of the catalogue",
                     "What fails: a [[failures.cause]] by its name, or a cause of the catalogue",
                     {.otherwise = "part, or from and to, say what"});
        section.read("node", strike.unit,
                     "Which node, counted from 0; of a cause with a domain, which of these",
                     {.bound = Bound::non_negative});
        section.read("duration", strike.duration, "How long what it takes is out of service",
                     {.bound = Bound::non_negative,
                      .otherwise = "the cause's reset or repair; of a part for ever"});
        const OutageKeys part(section);
        section.finish();
        if (section.describing() || !section.ok()) continue;
        if (s.duration > Duration{} && strike.at >= s.duration) {
            section.warning(
                "at", fmt::format("the campaign has ended by then, after {}", to_text(s.duration)));
        }
        if (cause.empty()) {
            if (part.given()) {
                part.add(section, strike.at, strike.duration, s);
            } else {
                section.error("cause", "is missing: what fails; or part, or from and to");
            }
            continue;
        }
        if (part.given()) section.error("cause", "part, or from and to, say what fails too");
        strike.cause = cause_of(cause, catalogue, s);
        const FailureCause& found = s.causes[strike.cause];
        const bool domain = found.domain != DomainKind::node;
        const std::int64_t units =
            domain ? s.nodes.domains[static_cast<std::size_t>(found.domain)].count()
                   : s.nodes.nodes;
        if (strike.unit >= units) {
            section.error("node",
                          fmt::format("expected 0 to {}, found {}", units - 1, strike.unit));
        }
        if (section.has("duration") && found.remedy == Remedy::restart) {
            section.warning("duration",
                            fmt::format("has no effect: '{}' takes nothing out of service", cause));
        }
        s.nodes.injected.push_back(strike);
    }
}

}  // namespace railyard

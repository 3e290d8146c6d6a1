#include <fmt/format.h>

#include "models/failure/cause_reader.h"

namespace railyard {

InjectionSpec read_injection(Section& section, const std::vector<std::string>& causes) {
    InjectionSpec spec;
    section.read("at", spec.at, "When, from the campaign's start",
                 {.bound = Bound::non_negative, .required = true});
    section.name("cause", spec.cause, causes, "a cause of [failures] or of the catalogue",
                 "What fails: a [[failures.cause]] by its name, or a cause of the catalogue",
                 {.otherwise = "part, or from and to, say what"});
    section.read("node", spec.unit,
                 "Which node, counted from 0; of a cause with a domain, which of these",
                 {Bound::non_negative});
    section.read("duration", spec.duration, "How long what it takes is out of service",
                 {Bound::non_negative, "the cause's reset or repair; of a part for ever"});
    section.read("part", spec.part,
                 "Instead of a cause: a switch, NIC or plane of the compute network, spine-0",
                 {.otherwise = "cause, or from and to, say what"});
    section.read("from", spec.from, "Instead of a cause: one end of a cable of the compute network",
                 {.otherwise = "cause or part say what"});
    section.read("to", spec.to, "Its other end", {.otherwise = "cause or part say what"});
    section.read("speed", spec.speed, "What is left of such a part's rate; 0: it is dead",
                 {Bound::fraction});
    if (section.has("speed") && !spec.names_part() && !section.describing()) {
        section.error("speed", "has no meaning without part, or from and to");
    }
    if (spec.speed >= 1) section.error("speed", "expected less than 1: such a part is sound");
    section.finish();
    if (section.describing() || !section.ok()) return spec;
    if (spec.cause.empty() && !spec.names_part()) {
        section.error("cause", "is missing: what fails; or part, or from and to");
    } else if (!spec.cause.empty() && spec.names_part()) {
        section.error("cause", "part, or from and to, say what fails too");
    }
    return spec;
}

void check_injection(Section& section, const InjectionSpec& spec, const FailureCause& cause,
                     std::int64_t units) {
    if (spec.unit >= units) {
        section.error("node", fmt::format("expected 0 to {}, found {}", units - 1, spec.unit));
    }
    if (cause.remedy == Remedy::restart) {
        warn_of_keys(section, {"duration"},
                     fmt::format("has no effect: '{}' takes nothing out of service", spec.cause));
    }
}

void warn_if_over(Section& section, const char* key, Duration at, Duration campaign) {
    if (campaign == Duration{} || at < campaign) return;
    section.warning(key,
                    fmt::format("the campaign has ended by then, after {}", to_text(campaign)));
}

}  // namespace railyard

"""Arguments with which a scenario is run small in the tests, where the whole of it takes too long."""

OF_SCENARIO = {
    "scenarios/studies/flapping_optics.toml": ["--set", 'run.duration="2 day"'],
    "scenarios/studies/year_of_research_cluster.toml": ["--set", 'run.duration="2 day"'],
}


def arguments(scenario):
    """`scenario` as its path from the checkout."""
    return OF_SCENARIO.get(str(scenario), [])

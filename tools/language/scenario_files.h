#pragma once
// The files that belong to a scenario beside its own: traces of jobs, networks, lists of flows.

#include <string>
#include <vector>

#include "sim/config.h"

namespace railyard {

// Whether the language has this key for a file's name: jobs.trace, fabric.compute.file.
bool names_a_file(const std::string& key);

// The scenario as one text: with what it includes put in, and the text itself if it includes nothing.
std::string in_one_file(const std::string& toml, const std::string& file);

// The scenario's own file and all that it names. What can't be read or is no TOML names none.
std::vector<std::string> files_of(const std::string& path,
                                  const std::vector<std::string>& settings);

}  // namespace railyard

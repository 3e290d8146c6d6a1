#pragma once
// YAML as the tree that scenarios are, so that every key knows its line.

#include <string>
#include <string_view>

#include "sim/config.h"

namespace railyard {

// One document. What is no YAML, has a key twice, is nested too deep, or repeats another part (*name) goes to
// `diagnostics`; null is Value::Kind::other. Words in quotes are texts, whatever they say.
Document parse_yaml(std::string_view text, std::string name, Diagnostics& diagnostics);

}  // namespace railyard

#pragma once
// The scenario language as JSON Schema (draft 7), for editors: Taplo, Even Better TOML.

#include <string>
#include <vector>

#include "sim/config.h"

namespace railyard {

// Every key with its type, its closed list of words, the pattern of its quantity with the units there are,
// what holds without it, and what it means; [override] with every value of the catalogue. It says what one
// key's value may be; what keys are to each other (a design that is possible) is for `railyard check`.
// `study` are the keys of [sweep], `table` those of [table], `design` those of [design]: their readers know
// them.
std::string scenario_json_schema(const std::vector<SchemaRow>& study,
                                 const std::vector<SchemaRow>& table,
                                 const std::vector<SchemaRow>& design);

}  // namespace railyard

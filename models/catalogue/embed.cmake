# Writes OUTPUT, a header with the text of FOLDER/<each of FILES>.toml as raw string literals.
string(REPLACE "\;" ";" names "${FILES}")
set(body "// Generated from models/catalogue/*.toml.\n#pragma once\n#include <string_view>\n\n")
string(APPEND body "namespace railyard {\n\nstruct CatalogueText {\n    std::string_view name;\n    std::string_view text;\n};\n")
# The literals know their length: counting it takes more steps than clang allows a constant.
string(APPEND body "using namespace std::string_view_literals;\n\n")
string(APPEND body "inline constexpr CatalogueText catalogue_texts[] = {\n")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}.toml" text)
  string(APPEND body "    {\"${name}.toml\", R\"~~~(${text})~~~\"sv},\n")
endforeach()
string(APPEND body "};\n\n}  // namespace railyard\n")
file(WRITE "${OUTPUT}" "${body}")

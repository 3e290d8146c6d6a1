# Writes OUTPUT, a source that compiles the tests SOURCES of FOLDER/tests as one. What any of them includes comes first,
# outside of all namespaces; each of them is in a namespace of its own.
set(includes)
set(bodies)
foreach(source ${SOURCES})
  file(STRINGS ${FOLDER}/tests/${source} lines REGEX "^#include")
  list(APPEND includes ${lines})
  string(MAKE_C_IDENTIFIER ${source} name)
  string(APPEND bodies "namespace ${name} {\n#include \"tests/${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)
file(WRITE ${OUTPUT} "${includes}\n${bodies}")

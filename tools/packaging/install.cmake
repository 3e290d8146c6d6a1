# What `cmake --install` installs and CPack packs: the program with its page, studies and tables, and the library.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(SHARE ${CMAKE_INSTALL_DATADIR}/railyard)

install(TARGETS railyard RUNTIME COMPONENT program)
install(DIRECTORY scenarios DESTINATION ${SHARE} COMPONENT program)
install(DIRECTORY tests/validation DESTINATION ${SHARE}/tests COMPONENT program
        PATTERN "*.py" EXCLUDE PATTERN "__pycache__" EXCLUDE)
# Where Debian's Python looks.
install(FILES notebooks/railyard.py DESTINATION lib/python3/dist-packages COMPONENT program)
install(FILES tools/packaging/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME railyard COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/railyard RENAME copyright COMPONENT program)
if(RAILYARD_REPORT)
  install(FILES ${PROJECT_BINARY_DIR}/report/page.html DESTINATION ${SHARE}/report COMPONENT program)
endif()
# tools/package writes the page from what --help prints; without help2man there is none.
install(FILES ${PROJECT_BINARY_DIR}/railyard.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program OPTIONAL)

# find_package(railyard) gives railyard::campaign and what it stands on.
get_property(LIBRARIES GLOBAL PROPERTY RAILYARD_LIBRARIES)
install(TARGETS ${LIBRARIES} EXPORT railyard ARCHIVE COMPONENT development)
install(EXPORT railyard NAMESPACE railyard:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/railyard
        FILE railyard-targets.cmake COMPONENT development)
install(DIRECTORY sim models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/railyard COMPONENT development
        FILES_MATCHING PATTERN "*.h")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/railyard-config.cmake.in
  ${PROJECT_BINARY_DIR}/railyard-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/railyard)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/railyard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/railyard-config.cmake ${PROJECT_BINARY_DIR}/railyard-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/railyard COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the railyard project <railyard@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "try a GPU training cluster in simulation before buying, wiring or tuning it")
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME railyard)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "python3-pandas")  # the Python module needs it
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME librailyard-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libcsv-dev, libprotobuf-dev")
set(CPACK_STRIP_FILES ON)
include(CPack)

# Makes the package that find_package(cairn CONFIG) finds: one in the installed copy, and one in the build tree (set
# cairn_DIR to the build folder).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
set(libraries cairn cairn_pipeline cairn_report)
if(TARGET cairn_cuda)
  list(APPEND libraries cairn_cuda)
endif()
install(TARGETS ${libraries} EXPORT cairn-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET cairn_cli)
  install(TARGETS cairn_cli)
endif()
install(EXPORT cairn-targets NAMESPACE cairn:: DESTINATION ${package_dir})
export(EXPORT cairn-targets NAMESPACE cairn:: FILE ${PROJECT_BINARY_DIR}/cairn-targets.cmake)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cairn-config.cmake.in
  ${PROJECT_BINARY_DIR}/cairn-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cairn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cairn-config.cmake ${PROJECT_BINARY_DIR}/cairn-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/report/html/page/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.uPlot)

# What `cmake --install` puts where: libraries, headers below include/rnic under the paths by which they include each
# other, the package for find_package(rnic), the program.
include(CMakePackageConfigHelpers)
set(rnic_package ${CMAKE_INSTALL_LIBDIR}/cmake/rnic)
foreach(top model tlm rtl firmware host_driver)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${top} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnic COMPONENT library
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(EXPORT rnicTargets NAMESPACE rnic:: DESTINATION ${rnic_package} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rnicConfig.cmake.in ${PROJECT_BINARY_DIR}/rnicConfig.cmake
                              INSTALL_DESTINATION ${rnic_package})
# Until 1.0 every minor version may change what headers declare (scripts/cmake/README.md).
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rnicConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rnicConfig.cmake ${PROJECT_BINARY_DIR}/rnicConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/rnic_dependencies.cmake
        DESTINATION ${rnic_package} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT library)
# What READMEs and `rnic --help` refer to, under the same names.
foreach(top model tlm rtl firmware host_driver testbenches traces scripts)
  file(GLOB_RECURSE rnic_texts RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${top}/*.md
       ${PROJECT_SOURCE_DIR}/${top}/*.png)
  list(FILTER rnic_texts EXCLUDE REGEX /node_modules/)
  foreach(text ${rnic_texts})
    get_filename_component(folder ${text} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${text} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT library)
  endforeach()
endforeach()
if(TARGET rnic)
  install(TARGETS rnic RUNTIME COMPONENT program)
endif()

# What is for link-time optimisation only the same compiler can read; installed archives have machine code alone.
if(rnic_lto)
  install(CODE "
    file(GLOB archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/librnic_*.a\")
    execute_process(COMMAND \"${CMAKE_STRIP}\" --enable-deterministic-archives -R .gnu.lto_* -R .gnu.debuglto_*
                            -N __gnu_lto_slim -N __gnu_lto_v1 \${archives} COMMAND_ERROR_IS_FATAL ANY)
  " COMPONENT library)
endif()

# cpack -G DEB in the build folder: one package with the program, the library and its headers. What the program needs is
# found by dpkg-shlibdeps; who links the library needs the packages that are recommended.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rnic)
set(CPACK_PACKAGE_CONTACT "the rnic developers <rnic@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION electronics)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "cmake, pkg-config, libsystemc-dev, libisal-dev, libpcap-dev, zlib1g-dev, libibverbs-dev")
include(CPack)

# What `cmake --install` puts where, and what other projects find there: the shared library quern::quern, its headers,
# the programs, a CMake package and a file for pkg-config.
#
# The library is every archive of src/ in one, and shows what include/quern declares, to C++ and to C: another LLVM,
# Abseil or Quern in the process does not meet its own. quern::quern is that library for add_subdirectory too.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Which names the library shows: classes and functions that the headers declare, read off them.
file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/quern/*.h)
set(exported "")
foreach(header ${public_headers})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(STRINGS ${header} lines REGEX "^[A-Za-z]")  # no comments: a bracket alone would join what follows
  foreach(line ${lines})
    if(line MATCHES "^(class|struct) (\\[\\[nodiscard\\]\\] )?([A-Z][A-Za-z]*)[ ;:{]?")
      list(APPEND exported "quern::${CMAKE_MATCH_3}::*")
    elseif(line MATCHES "^[A-Za-z].* \\*?&?([A-Z][A-Za-z]*)\\(")
      list(APPEND exported "quern::${CMAKE_MATCH_1}*")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES exported)
list(JOIN exported ";\n      " exported)
# The functions of quern/c.h have a version of their own: they stay, and what is added later gets a later one.
file(READ ${PROJECT_SOURCE_DIR}/include/quern/c.h header)
string(REGEX REPLACE "/\\*[^*]*(\\*[^*/][^*]*)*\\*/" "" header "${header}")
string(REGEX MATCHALL "quern_[a-z_]+\\(" exported_c "${header}")
list(TRANSFORM exported_c REPLACE "\\($" "")
list(JOIN exported_c ";\n    " exported_c)
set(QUERN_EXPORTS ${PROJECT_BINARY_DIR}/generated/quern.exports)
file(CONFIGURE OUTPUT ${QUERN_EXPORTS} @ONLY CONTENT "QUERN_C_1 {
  global:
    @exported_c@;
};
QUERN_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {
  global:
    extern \"C++\" {
      @exported@;
    };
  local: *;
};
")

add_library(quern_shared SHARED $<TARGET_OBJECTS:quern_c>)
add_library(quern::quern ALIAS quern_shared)
set_target_properties(quern_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME quern EXPORT_NAME quern
                      VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${QUERN_EXPORTS})
target_link_libraries(quern_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,quern_compiler>)
target_link_options(quern_shared PRIVATE -Wl,--version-script=${QUERN_EXPORTS} -Wl,--gc-sections
                    -Wl,--no-undefined)
target_include_directories(quern_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(quern_shared INTERFACE cxx_std_20)

set_target_properties(quern_tool quern_serve_tool PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
set_target_properties(quern_shared PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
add_dependencies(quern quern_shared quern_rt quern_linear)
install(TARGETS quern_shared EXPORT quern)
install(TARGETS quern_tool quern_serve_tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/quern TYPE INCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE TYPE DOC)
# The manual page, and completion where the shells look: zsh of Debian has a folder of its own for packages.
set(typed ${PROJECT_BINARY_DIR}/tools/quern/typed)
set(functions site-functions)
if(EXISTS /etc/debian_version)
  set(functions vendor-completions)
endif()
set(QUERN_ZSH_FUNCTIONS ${CMAKE_INSTALL_DATADIR}/zsh/${functions} CACHE STRING "Where zsh's completion is installed")
install(FILES ${typed}/quern.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${typed}/quern DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${typed}/_quern DESTINATION ${QUERN_ZSH_FUNCTIONS})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
install(EXPORT quern NAMESPACE quern:: FILE quernTargets.cmake DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/quernConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/quernConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/quernConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/quernConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/quernConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/QuernModel.cmake DESTINATION ${package})
# Around compiled models: archives for this machine, and their sources, which QuernModel.cmake builds for any.
install(TARGETS quern_rt quern_kit quern_linear ARCHIVE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/rt ${PROJECT_SOURCE_DIR}/src/kit ${PROJECT_SOURCE_DIR}/src/linear
        DESTINATION ${CMAKE_INSTALL_DATADIR}/quern/src)
configure_file(${PROJECT_SOURCE_DIR}/cmake/quern.pc.in ${PROJECT_BINARY_DIR}/generated/quern.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What others wrote and the programs hold goes along with its licence.
if(QUERN_STATIC_LLVM)
  foreach(name llvm-19-dev libicu-dev libabsl-dev libxxhash-dev zlib1g-dev libminizip-dev libzstd-dev libprotobuf-dev
          libhwy-dev nlohmann-json3-dev libcli11-dev node-d3)
    if(EXISTS /usr/share/doc/${name}/copyright)
      install(FILES /usr/share/doc/${name}/copyright RENAME ${name}.txt
              DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences)
    endif()
  endforeach()
endif()

# `cpack` in the build folder, or `./dev package`: a .deb and a tarball of what is installed.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB TGZ)
  set(CPACK_PACKAGE_CONTACT "The Quern developers")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiles model graphs to native kernels, and runs language models")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS liblapacke)  # for graphs with linear algebra
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  include(CPack)
endif()

# The version and the commit that a build is of, as text that the compiler reads: generated/version.inc, written anew at
# each build, and only where it changed.

# quern_version(TARGET): gives the library QUERN_VERSION_TEXT, "0.1.0 (b79915c)" by #include "version.inc".
function(quern_version target)
  set(file ${PROJECT_BINARY_DIR}/generated/version.inc)
  add_custom_target(${target}_version BYPRODUCTS ${file}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUTPUT=${file}
            -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake VERBATIM)
  add_dependencies(${target} ${target}_version)
endfunction()

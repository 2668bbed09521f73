# Headers of the system that many sources include, parsed once for all sources that are compiled alike.
#
# What is precompiled names no path below the checkout: its bits, and so what ccache has of the objects, are the same in
# every checkout. (CMake's own target_precompile_headers puts a file of the build folder into it.) And no edit in the
# tree makes it again. With g++ nothing is precompiled: `./dev gcc` shows where a source forgot to include what it uses.

find_file(QUERN_PRECOMPILED_LAST absl/status/statusor.h REQUIRED DOC "Abseil's StatusOr, the last header precompiled")

# quern_precompiled(NAME [LIBRARY] HEADERS header... [DEPS target...]): the target quern_precompiled_NAME, with the
# flags of a library or of a program.
function(quern_precompiled name)
  cmake_parse_arguments(ARG "LIBRARY" "" "HEADERS;DEPS" ${ARGN})
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    return()
  endif()
  set(target quern_precompiled_${name})
  set(flags "")
  if(ARG_LIBRARY)
    set(flags LIBRARY)
  endif()
  add_library(${target} OBJECT ${QUERN_PRECOMPILED_LAST})
  quern_flags(${target} ${flags})
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS})
  list(TRANSFORM ARG_HEADERS PREPEND "SHELL:-include ")
  # Templates that the headers use are instantiated here, once; without times in it two builds make the same bits.
  target_compile_options(${target} PRIVATE ${ARG_HEADERS} -xc++-header -fpch-instantiate-templates
                         "SHELL:-Xclang -fno-pch-timestamp")
  # A target that depends on an object library waits for no object of it; on this one it does.
  add_custom_target(${target}_made DEPENDS $<TARGET_OBJECTS:${target}>)
endfunction()

# quern_use_precompiled(TARGET NAME): the C++ sources of the target begin with what is precompiled under that name.
function(quern_use_precompiled target name)
  if(NOT TARGET quern_precompiled_${name})
    return()
  endif()
  add_dependencies(${target} quern_precompiled_${name}_made)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include-pch $<TARGET_OBJECTS:quern_precompiled_${name}>>")
endfunction()

set_source_files_properties(${QUERN_PRECOMPILED_LAST} PROPERTIES LANGUAGE CXX)
# A header belongs here when a tenth of the sources include it.
set(common algorithm array bit cmath cstdint cstring functional limits map memory optional set span string string_view
    utility variant vector absl/strings/str_cat.h absl/strings/str_format.h absl/strings/str_join.h)
quern_precompiled(library LIBRARY HEADERS ${common})
quern_precompiled(llvm LIBRARY HEADERS ${common} llvm/IR/IRBuilder.h llvm/IR/Intrinsics.h llvm/IR/Module.h
                  llvm/IR/Verifier.h llvm/Target/TargetMachine.h)
quern_precompiled(program HEADERS ${common} chrono cstdio cstdlib filesystem fstream CLI/CLI.hpp)
if(QUERN_TESTS)
  quern_precompiled(test HEADERS ${common} cstdio cstdlib filesystem fstream random sstream gmock/gmock.h gtest/gtest.h
                  DEPS GTest::gtest)
endif()

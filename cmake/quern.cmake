# Build helpers: one library per folder of src/, one test program per folder of tests/unit/.

set(QUERN_WARNINGS -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND QUERN_WARNINGS -Wglobal-constructors)
endif()

# quern_flags(TARGET [LIBRARY]): warnings and sanitizers; for a library of ours, no RTTI and no exceptions.
function(quern_flags target)
  target_compile_options(${target} PRIVATE ${QUERN_WARNINGS})
  if("LIBRARY" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti)
  endif()
  if(QUERN_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(QUERN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${QUERN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${QUERN_SANITIZE})
    if(QUERN_SANITIZE MATCHES undefined)
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr -fno-sanitize-recover=undefined)
    endif()
  endif()
endfunction()

include(precompile)

# quern_compile_options(TARGET [LIBRARY] [PRECOMPILED name]): a target of ours: its flags, what it includes, and what is
# precompiled for it (for a program, where nothing is said).
function(quern_compile_options target)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "" ${ARGN})
  quern_flags(${target} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated
                             PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED program)
  endif()
  quern_use_precompiled(${target} ${ARG_PRECOMPILED})
endfunction()

# quern_library(NAME [LLVM] [DEPS target...]): every .cc below src/NAME, no RTTI, no exceptions.
# LLVM: the folder may include LLVM headers (codegen/cpu, jit, aot only).
function(quern_library name)
  cmake_parse_arguments(ARG "LLVM" "FOLDER" "DEPS;EXCLUDE" ${ARGN})
  set(folder ${name})
  if(ARG_FOLDER)
    set(folder ${ARG_FOLDER})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(NOT sources)
    add_library(quern_${name} INTERFACE)
    return()
  endif()
  add_library(quern_${name} STATIC ${sources})
  set(precompiled library)
  if(ARG_LLVM)
    set(precompiled llvm)
  endif()
  quern_compile_options(quern_${name} LIBRARY PRECOMPILED ${precompiled})
  target_link_libraries(quern_${name} PUBLIC ${ARG_DEPS})
  if(ARG_LLVM)
    target_include_directories(quern_${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    target_link_libraries(quern_${name} PUBLIC quern_llvm)
  endif()
endfunction()

# quern_test(NAME [DEPS target...]): every *_test.cc in tests/unit/NAME as one gtest program.
function(quern_test name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPS;LABELS" ${ARGN})
  set(folder unit/${name})
  if(ARG_FOLDER)
    set(folder ${ARG_FOLDER})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  quern_compile_options(${name}_test PRECOMPILED test)
  target_compile_options(${name}_test PRIVATE -Wno-global-constructors)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Only the sources that open files of the checkout are told where it is: the others are the same in every checkout,
  # so that a compiler cache has them.
  foreach(source ${sources})
    file(STRINGS ${source} opens REGEX "QUERN_(SOURCE|MODELS)_DIR|(golden|kernel_files|device_models)\\.h\"")
    if(opens)
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS
        "QUERN_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";QUERN_MODELS_DIR=\"${PROJECT_SOURCE_DIR}/../shared/models\"")
    endif()
  endforeach()
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} quern_test_main)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
endfunction()

# quern_generated_table(OUT FOLDER GLOB PREFIX): writes OUT with one line PREFIX(stem) for each file, sorted.
# It takes the place of static-constructor registration, which static libraries lose.
function(quern_generated_table out glob prefix)
  file(GLOB files CONFIGURE_DEPENDS ${glob})
  list(SORT files)
  set(text "")
  foreach(file ${files})
    get_filename_component(stem ${file} NAME_WE)
    string(APPEND text "${prefix}(${stem})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}")
endfunction()

# quern_file_hash(TARGET OUT ROOT file...): OUT, which sources of the target include, has a hash of the files and of
# their names below ROOT.
function(quern_file_hash target out root)
  list(SORT ARGN)
  set(script ${PROJECT_SOURCE_DIR}/cmake/file_hash.cmake)
  add_custom_command(OUTPUT ${out} COMMAND ${CMAKE_COMMAND} -DROOT=${root} "-DFILES=${ARGN}" -DOUT=${out} -P ${script}
    DEPENDS ${ARGN} ${script} COMMENT "Hash for ${target}" VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

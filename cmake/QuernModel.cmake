# For a program's own build: a model file becomes a static library with a C header, and needs no Quern at run time.
#
#   list(APPEND CMAKE_MODULE_PATH /path/to/quern/cmake)
#   include(QuernModel)
#   quern_add_model(addition addition.gguf CPU x86-64-v2 x86-64-v3 x86-64-v4)
#   target_link_libraries(app PRIVATE addition)   # #include "addition.h"
#   target_link_libraries(app PRIVATE quern_rt)   # #include "quern/rt.h": threads, file mapping; if wanted
#
# QUERN_COMPILER is the quern program: build/bin/quern of this checkout after `./dev build`, or one on the PATH.
include_guard(GLOBAL)

get_filename_component(quern_checkout ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
find_program(QUERN_COMPILER quern HINTS ${quern_checkout}/build/bin REQUIRED NO_CMAKE_FIND_ROOT_PATH)
if(NOT TARGET quern_rt)
  add_subdirectory(${quern_checkout}/src/rt ${CMAKE_BINARY_DIR}/quern_rt EXCLUDE_FROM_ALL)
endif()

# quern_add_model(NAME MODEL [TARGET triple] [CPU level...] [CONTEXT positions] [EXACT] [EMBED_WEIGHTS])
# NAME is the library, the prefix of the model's functions and the name of its header. Without TARGET the model is for
# the processor that CMake builds for. It is compiled again when its file or the compiler changes.
function(quern_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "EXACT;EMBED_WEIGHTS" "CONTEXT;TARGET" "CPU")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quern_add_model does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(model ${model} ABSOLUTE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.quern)
  set(command ${QUERN_COMPILER} compile ${model} -o ${folder} --name ${target})
  if(NOT arg_TARGET AND CMAKE_CROSSCOMPILING)
    set(arg_TARGET ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
  endif()
  if(arg_TARGET)
    list(APPEND command --target ${arg_TARGET})
  endif()
  if(arg_CPU)
    list(JOIN arg_CPU "," levels)
    list(APPEND command --cpu ${levels})
  endif()
  if(arg_CONTEXT)
    list(APPEND command --context ${arg_CONTEXT})
  endif()
  if(arg_EXACT)
    list(APPEND command --exact)
  endif()
  if(arg_EMBED_WEIGHTS)
    list(APPEND command --embed-weights)
  endif()
  add_custom_command(OUTPUT ${folder}/${target}.o ${folder}/${target}.h ${folder}/${target}.json
    COMMAND ${command} DEPENDS ${model} ${QUERN_COMPILER} COMMENT "Compiling the model ${target}" VERBATIM)
  set_source_files_properties(${folder}/${target}.o PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${target} STATIC ${folder}/${target}.o ${folder}/${target}.h)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${target} INTERFACE ${folder})
  target_link_libraries(${target} INTERFACE m)
endfunction()

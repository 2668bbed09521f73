# A format that a .proto file describes, read by the lite runtime of protobuf, which goes into what links it.

find_program(QUERN_PROTOC protoc REQUIRED DOC "The compiler of protocol buffers (protobuf-compiler)")
find_library(QUERN_PROTOBUF_LITE NAMES libprotobuf-lite.a protobuf-lite REQUIRED)

# quern_proto(NAME FILE): the library NAME, and FILE's header in ${CMAKE_BINARY_DIR}/generated, by its path below src.
function(quern_proto name file)
  file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR}/src ${file})
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${place})
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${out}/${stem}.cc ${out}/${stem}.h
    COMMAND ${QUERN_PROTOC} --proto_path=${CMAKE_SOURCE_DIR}/src --cpp_out=lite:${out} ${file}
    DEPENDS ${file} COMMENT "Reading ${place}" VERBATIM)
  add_library(${name} STATIC ${out}/${stem}.cc ${out}/${stem}.h)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_compile_options(${name} PRIVATE -w)  # what it says of generated code nobody can mend
  if(QUERN_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  target_link_libraries(${name} PUBLIC ${QUERN_PROTOBUF_LITE} Threads::Threads)
endfunction()

# A format that a .proto file describes, read by the lite runtime of protobuf: its archive in programs, which start
# sooner so; its shared library where it would go into one of ours, which Debian's archive is not made for.

find_program(QUERN_PROTOC protoc REQUIRED DOC "The compiler of protocol buffers (protobuf-compiler)")
find_library(QUERN_PROTOBUF_LITE_SHARED NAMES protobuf-lite REQUIRED)
find_library(QUERN_PROTOBUF_LITE NAMES libprotobuf-lite.a protobuf-lite REQUIRED)

# quern_proto(NAME FILE): the library NAME, and FILE's header in ${PROJECT_BINARY_DIR}/generated, by its path below src.
function(quern_proto name file)
  file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR}/src ${file})
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${place})
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${out}/${stem}.cc ${out}/${stem}.h
    COMMAND ${QUERN_PROTOC} --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=lite:${out} ${file}
    DEPENDS ${file} COMMENT "Reading ${place}" VERBATIM)
  add_library(${name} STATIC ${out}/${stem}.cc ${out}/${stem}.h)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_compile_options(${name} PRIVATE -w)  # what it says of generated code nobody can mend
  if(QUERN_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  set(shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
  target_link_libraries(${name} PUBLIC $<IF:${shared},${QUERN_PROTOBUF_LITE_SHARED},${QUERN_PROTOBUF_LITE}>
                        Threads::Threads)
endfunction()

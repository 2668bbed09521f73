# What compiled models are made of beside kernels: the C code that they share, as bitcode, and the text of the ABI header.

# quern_aot_embed(TARGET): adds both to the library.
function(quern_aot_embed target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/aot)
  file(MAKE_DIRECTORY ${folder})
  set(source ${CMAKE_SOURCE_DIR}/src/aot/support/support.c)
  # For the least processor: it runs before the processor is known. No jump tables or stack protector, which would want more
  # of the program it is linked into than memcpy and memset.
  add_custom_command(OUTPUT ${folder}/support.bc
    COMMAND ${QUERN_SIMD_CXX} -x c -std=c11 -O2 -march=x86-64 -fPIC -Wall -Wextra -Werror -fno-ident -fno-stack-protector
            -fno-asynchronous-unwind-tables -fvisibility=hidden -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include
            -MD -MF ${folder}/support.d -MT ${folder}/support.bc -emit-llvm -c ${source} -o ${folder}/support.bc
    DEPENDS ${source} DEPFILE ${folder}/support.d COMMENT "AOT support.bc" VERBATIM)
  set(abi ${CMAKE_SOURCE_DIR}/include/quern/abi.h)
  set(text ".section .rodata\n")
  foreach(row support=${folder}/support.bc abi=${abi})
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 name)
    list(GET row 1 file)
    string(APPEND text ".globl quern_aot_${name}\n.hidden quern_aot_${name}\n.globl quern_aot_${name}_end\n"
      ".hidden quern_aot_${name}_end\n.balign 16\nquern_aot_${name}:\n.incbin \"${file}\"\nquern_aot_${name}_end:\n")
  endforeach()
  string(APPEND text ".section .note.GNU-stack,\"\",%progbits\n")
  file(CONFIGURE OUTPUT ${folder}/embed.S CONTENT "${text}")
  set_source_files_properties(${folder}/embed.S PROPERTIES OBJECT_DEPENDS "${folder}/support.bc;${abi}")
  target_sources(${target} PRIVATE ${folder}/embed.S)
endfunction()

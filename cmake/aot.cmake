# What compiled models are made of beside kernels: the C code that they share, as bitcode for each architecture, and the
# text of the ABI header.

# quern_aot_embed(TARGET): adds both to the library.
function(quern_aot_embed target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/aot)
  file(MAKE_DIRECTORY ${folder})
  set(source ${PROJECT_SOURCE_DIR}/src/aot/support/support.c)
  # For the least processor of each architecture: it runs before the processor is known. No jump tables or stack
  # protector, which would want more of the program it is linked into than memcpy and memset.
  set(embedded "")
  foreach(row x86_64=x86-64 aarch64=armv8-a)
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 architecture)
    list(GET row 1 march)
    set(module ${folder}/support_${architecture}.bc)
    add_custom_command(OUTPUT ${module}
      COMMAND ${QUERN_SIMD_CXX} -x c -std=c11 -O2 --target=${architecture}-linux-gnu -march=${march} -fPIC -Wall
              -Wextra -Werror -fno-ident -fno-stack-protector -fno-asynchronous-unwind-tables -fvisibility=hidden
              -fno-omit-frame-pointer
              -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${module}.d -MT ${module} -emit-llvm
              -c ${source} -o ${module}
      DEPENDS ${source} DEPFILE ${module}.d COMMENT "AOT support_${architecture}.bc" VERBATIM)
    list(APPEND embedded support_${architecture}=${module})
  endforeach()
  quern_embed(${target} quern_aot ${embedded} abi=${PROJECT_SOURCE_DIR}/include/quern/abi.h)
endfunction()

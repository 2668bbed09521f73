# Builds the SIMD sources once per instruction-set level, each as bitcode (for the JIT to inline) and, where this
# machine's processor can run the level, as an object made from the very same bitcode (for calls by address), so that
# the two forms cannot differ.
#
# clang does this in every build, also where g++ compiles the rest, since only clang writes bitcode. The sources stay
# uninstrumented in sanitizer builds: instrumented bitcode would call a run-time library that generated code does not
# have.

find_program(QUERN_SIMD_CXX NAMES clang++-19 REQUIRED DOC "Writes the SIMD bitcode; its version must be LLVM's")
find_program(QUERN_LLVM_LINK NAMES llvm-link-19 HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
find_program(QUERN_LLVM_NM NAMES llvm-nm-19 HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
find_path(QUERN_HIGHWAY_INCLUDE hwy/highway.h REQUIRED)

# What the x86 levels ask for beside their march. Highway looks only at the features: without aes and pclmul it falls
# back to a lesser target, and its AVX3_DL needs the long list.
set(QUERN_SIMD_DL_FEATURES aes pclmul avx512vnni avx512bf16 avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq gfni
    vaes vpclmulqdq)
set(QUERN_SIMD_LEVELS "")

# One level: its name; the -march that selects it and LLVM's name of the same processor; bytes of a vector; Highway's
# name of the target; and `objects`, where the functions also have addresses for the JIT to call, or `bitcode`, for a
# level of another architecture than this machine's.
macro(quern_simd_row level march cpu bytes target forms)
  list(APPEND QUERN_SIMD_LEVELS ${level})
  set(QUERN_SIMD_MARCH_${level} ${march})
  set(QUERN_SIMD_CPU_${level} ${cpu})
  set(QUERN_SIMD_BYTES_${level} ${bytes})
  set(QUERN_SIMD_FORMS_${level} ${forms})
  # simd.h checks that the flags select this target.
  set(QUERN_SIMD_DEFINES_${level} -DQUERN_LEVEL=${level} -DQUERN_LEVEL_TARGET=HWY_${target})
endmacro()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  quern_simd_row(sse4       x86-64-v2 x86-64-v2 16 SSE4    objects)
  quern_simd_row(avx2       x86-64-v3 x86-64-v3 32 AVX2    objects)
  quern_simd_row(avx512     x86-64-v4 x86-64-v4 64 AVX3    objects)
  quern_simd_row(avx512vnni x86-64-v4 x86-64-v4 64 AVX3_DL objects)
  quern_simd_row(amx        x86-64-v4 x86-64-v4 64 AVX3_DL objects)
  foreach(level sse4 avx2 avx512)
    set(QUERN_SIMD_FEATURES_${level} aes pclmul)
  endforeach()
  set(QUERN_SIMD_FEATURES_avx512vnni ${QUERN_SIMD_DL_FEATURES})
  set(QUERN_SIMD_FEATURES_amx ${QUERN_SIMD_DL_FEATURES} amx-tile amx-int8 amx-bf16)
  # Highway 1.0.3 asks for AVX-VNNI, the 256-bit form that Ice Lake and Zen 4 lack, where it means AVX512-VNNI. It is
  # told that the macro exists; the compiler is not, and emits no such instruction.
  list(APPEND QUERN_SIMD_DEFINES_avx512vnni -D__AVXVNNI__=1)
  list(APPEND QUERN_SIMD_DEFINES_amx -D__AVXVNNI__=1)
else()
  message(FATAL_ERROR "quern_simd has no instruction-set levels for ${CMAKE_SYSTEM_PROCESSOR}")
endif()
quern_simd_row(neon         armv8-a   generic   16 NEON    bitcode)
set(QUERN_SIMD_TRIPLE_neon --target=aarch64-linux-gnu)
# The compiler finds them by itself; asking here names what is missing, before a wall of errors does.
find_path(QUERN_AARCH64_HEADERS cstdint PATHS /usr/aarch64-linux-gnu/include/c++/12 NO_DEFAULT_PATH REQUIRED
          DOC "C++ headers for aarch64 (libstdc++-12-dev-arm64-cross)")

set(QUERN_SIMD_FLAGS -std=c++20 -O2 -fPIC -Wall -Wextra -Werror -fno-exceptions -fno-rtti -fno-math-errno
    -ffp-contract=off -fno-stack-protector -fno-asynchronous-unwind-tables -fno-ident -fvisibility=hidden
    -fno-threadsafe-statics -fno-omit-frame-pointer -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)
# Naming the default folder would put it before the compiler's own.
if(NOT QUERN_HIGHWAY_INCLUDE STREQUAL "/usr/include")
  list(APPEND QUERN_SIMD_FLAGS -isystem ${QUERN_HIGHWAY_INCLUDE})
endif()

# quern_simd_precompiled(FOLDER flag...): simd.pch in the folder, from simd.h, with which every source begins. All of
# Highway is below it: more to parse than the source. The file has the checkout's path in it, so ccache is told to look
# at simd.pch.sum instead, the sum of the text, which is the same in every checkout.
function(quern_simd_precompiled folder)
  set(header ${CMAKE_CURRENT_SOURCE_DIR}/simd.h)
  add_custom_command(OUTPUT ${folder}/simd.pch ${folder}/simd.pch.sum
    COMMAND ${QUERN_SIMD_CXX} ${ARGN} -fpch-instantiate-templates -Xclang -fno-pch-timestamp
            -MD -MF simd.pch.d -MT ${folder}/simd.pch -x c++-header ${header} -o simd.pch
    COMMAND ${QUERN_SIMD_CXX} ${ARGN} -E -dD -P -x c++-header ${header} -o simd.txt
    COMMAND ${CMAKE_COMMAND} -E sha256sum simd.txt > simd.pch.sum
    WORKING_DIRECTORY ${folder} DEPENDS ${header} DEPFILE ${folder}/simd.pch.d COMMENT "SIMD simd.h" VERBATIM)
endfunction()

# quern_simd_level(LEVEL OBJECTS_VAR BITCODE_VAR source...): sets the list of objects, empty for a level that is bitcode
# only, and the path of the linked bitcode.
function(quern_simd_level level objects_out bitcode_out)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${level})
  file(MAKE_DIRECTORY ${folder})
  set(flags ${QUERN_SIMD_TRIPLE_${level}} -march=${QUERN_SIMD_MARCH_${level}})
  foreach(feature ${QUERN_SIMD_FEATURES_${level}})
    list(APPEND flags -m${feature})
  endforeach()
  if(QUERN_SIMD_BYTES_${level} EQUAL 64)
    list(APPEND flags -mprefer-vector-width=512)  # x86-64-v4 would rather split a raw vector than use the full register
  endif()
  set(source_flags ${QUERN_SIMD_FLAGS} ${flags} ${QUERN_SIMD_DEFINES_${level}})
  quern_simd_precompiled(${folder} ${source_flags})
  set(launcher "")
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_PCH_EXTSUM=1 ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(objects "")
  set(modules "")
  foreach(source ${ARGN})
    get_filename_component(stem ${source} NAME_WE)
    get_filename_component(kind ${source} DIRECTORY)
    get_filename_component(kind ${kind} NAME)
    set(module ${folder}/${kind}_${stem}.bc)
    set(object ${folder}/${kind}_${stem}.o)
    add_custom_command(OUTPUT ${module}
      COMMAND ${launcher} ${QUERN_SIMD_CXX} ${source_flags} -include-pch ${folder}/simd.pch -MD -MF ${module}.d
              -MT ${module} -emit-llvm -c ${source} -o ${module}
      DEPENDS ${source} ${folder}/simd.pch DEPFILE ${module}.d COMMENT "SIMD ${level} ${kind}/${stem}.cc" VERBATIM)
    list(APPEND modules ${module})
    if(QUERN_SIMD_FORMS_${level} STREQUAL "bitcode")
      continue()
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${QUERN_SIMD_CXX} -O2 -fPIC ${flags} -Xclang -disable-llvm-passes -Wno-unused-command-line-argument
              -c ${module} -o ${object}
      DEPENDS ${module} COMMENT "SIMD ${level} ${kind}_${stem}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(library ${folder}/library.bc)
  add_custom_command(OUTPUT ${library} COMMAND ${QUERN_LLVM_LINK} ${modules} -o ${library} DEPENDS ${modules}
    COMMENT "SIMD ${level} library.bc" VERBATIM)
  # The inline functions alone: a twentieth of the whole, and what nearly every kernel links.
  set(math_modules ${modules})
  list(FILTER math_modules INCLUDE REGEX "/math_[^/]*$")
  add_custom_command(OUTPUT ${folder}/math.bc COMMAND ${QUERN_LLVM_LINK} ${math_modules} -o ${folder}/math.bc
    DEPENDS ${math_modules} COMMENT "SIMD ${level} math.bc" VERBATIM)
  set(${objects_out} ${objects} PARENT_SCOPE)
  set(${bitcode_out} ${library} PARENT_SCOPE)
endfunction()

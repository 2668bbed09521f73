# A toolchain for aarch64 Linux: clang and lld, with Debian's libc6-dev-arm64-cross. With aarch64-linux-gnu-gcc as
# CMAKE_C_COMPILER, neither the target nor the linker needs naming.
#
#   cmake -G Ninja -S examples/aot -B /tmp/add-arm -DCMAKE_TOOLCHAIN_FILE=aarch64.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -static")

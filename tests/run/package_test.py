#!/usr/bin/env python3
"""The .deb and the tarball of `./dev package`, tried where there is nothing else: a folder with the C library alone.

    package_test.py SOURCE_DIR PACKAGES_DIR CXX
PACKAGES_DIR has the two files. `quern` has to run there by chroot, in a user's namespace where this is not root; a
project in C and one in C++ find what the packages hold. Prints the sizes, and how long a start takes.
"""
import os
import pathlib
import shutil
import statistics
import sys
import tarfile
import tempfile
import time

from program import expect, expect_typed, said

SOURCE, PACKAGES, CXX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
# What a copied program may ask of a system: the C library, and its loader.
SYSTEM = ("linux-vdso.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
          "/lib64/ld-linux-x86-64.so.2")


def jailed(jail, *command):
    """The command, whose path is one of the jail, with that folder as the root and no environment."""
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    enter = [chroot] if os.geteuid() == 0 else [shutil.which("unshare"), "--map-root-user", chroot]
    return said(*enter, jail, *command, env={"HOME": "/", "PATH": "/usr/bin"})


def make_jail(jail, prefix):
    program = prefix / "bin/quern"
    needed = [line.split() for line in said("ldd", program).splitlines()]
    foreign = [row[0] for row in needed if row[0] not in SYSTEM]
    expect(not foreign, f"{program} asks for {foreign}")
    for row in needed:
        path = next((word for word in row if word.startswith("/")), None)
        if path:
            target = jail / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    shutil.copytree(prefix, jail / "usr", symlinks=True)
    shutil.copy(SOURCE / "models/addition.gguf", jail)
    (jail / "tmp").mkdir()


def try_prefix(scratch, name, prefix):
    jail = scratch / f"jail_{name}"
    jail.mkdir()
    make_jail(jail, prefix)
    answer = jailed(jail, "/usr/bin/quern", "run", "/addition.gguf", "--prompt", "27+58=")
    expect(answer == "85\n", f"{name}: {answer!r}")
    written = jailed(jail, "/usr/bin/quern", "compile", "/addition.gguf", "-o", "/out/addition.o", "--embed-vocabulary",
                     "--embed-weights")
    expect(written.split() == ["/out/addition.o", "/out/addition.h", "/out/addition.json"], written)
    expect_typed(prefix / "share", lambda *arguments: jailed(jail, "/usr/bin/quern", *arguments))
    times = []
    for _ in range(9):
        began = time.monotonic()
        jailed(jail, "/usr/bin/quern", "--version")
        times.append(time.monotonic() - began)
    size = (prefix / "bin/quern").stat().st_size
    print(f"{name}: quern has {size / 1e6:.1f} MB, a start takes {1e3 * statistics.median(times):.0f} ms")
    shown = said("nm", "-DC", "--defined-only", prefix / "lib/libquern.so")
    expect("llvm::" not in shown, f"{name}: the library shows its LLVM")
    licences = {path.stem for path in (prefix / "share/doc/quern/licences").iterdir()}
    expect({"llvm-19-dev", "libicu-dev", "libabsl-dev"} <= licences, f"{name}: licences of {licences}")
    # A project in C that finds the package, without a checkout.
    example = scratch / f"example_{name}"
    shutil.copytree(SOURCE / "examples/aot", example / "aot")
    said("cmake", "-S", example / "aot", "-B", example / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DADDITION_MODEL={SOURCE / 'models/addition.gguf'}")
    said("cmake", "--build", example / "build")
    answer = said(example / "build/add", SOURCE / "models/addition.gguf", "27+58=")
    expect(answer == "85\n", f"{name}: the example in C gives {answer!r}")
    # And one in C++, with the shared library.
    said("cmake", "-S", SOURCE / "tests/install", "-B", scratch / f"cxx_{name}", "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={CXX}")
    said("cmake", "--build", scratch / f"cxx_{name}")
    answer = said(scratch / f"cxx_{name}" / "consumer", SOURCE / "models/addition.gguf")
    expect(answer == "85\n12\n", f"{name}: the consumer gives {answer!r}")


def one(pattern):
    found = sorted(PACKAGES.glob(pattern))
    expect(len(found) == 1, f"{PACKAGES} has {found} for {pattern}")
    return found[0]


def main():
    with tempfile.TemporaryDirectory(prefix="quern_package_") as folder:
        scratch = pathlib.Path(folder)
        deb, tarball = one("*.deb"), one("*.tar.gz")
        said("dpkg-deb", "-x", deb, scratch / "deb")
        fields = said("dpkg-deb", "-f", deb)
        expect("Package: quern\n" in fields and "Depends: " in fields, fields)
        with tarfile.open(tarball) as archive:
            archive.extractall(scratch / "tar")
        (top,) = (scratch / "tar").iterdir()
        for name, file in (("deb", deb), ("tarball", tarball)):
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
            try_prefix(scratch, name, scratch / "deb/usr" if name == "deb" else top)
        listed = [set(str(p.relative_to(r)) for p in r.rglob("*")) for r in (scratch / "deb/usr", top)]
        expect(listed[0] == listed[1], f"the two hold other files: {sorted(listed[0] ^ listed[1])[:10]}")


main()

#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles what redlock and its tests need with musl-gcc, as static libraries in /musl, from the sources of Debian.
set -eu
# The wrapper has no headers of the kernel.
for name in linux asm-generic; do ln -sfn "/usr/include/$name" "/usr/include/x86_64-linux-musl/$name"; done
ln -sfn /usr/include/x86_64-linux-gnu/asm /usr/include/x86_64-linux-musl/asm
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update -q
mkdir -p /sources /musl/lib/pkgconfig
cd /sources
apt-get source -q --only-source hiredis/bookworm libsodium/bookworm jansson/bookworm check/bookworm

make -C hiredis-*/ -j2 PREFIX=/musl CC=musl-gcc install
rm -f /musl/lib/*.so*

(cd libsodium-*/ && autoreconf -fi >autoreconf.log 2>&1 && ./configure --quiet --host=x86_64-linux-musl --prefix=/musl --disable-shared CC=musl-gcc && make -s -j2 && make -s install)

# Configures a library with cmake, in out/: FOLDER OPTION...
configure() {
    folder=$1
    shift
    cmake -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_INSTALL_PREFIX=/musl -DCMAKE_BUILD_TYPE=Release "$@" \
        -S "$folder" -B "$folder/out" >out.log 2>&1 || { tail -20 out.log; exit 1; }
}

configure jansson-*/ -DJANSSON_BUILD_SHARED_LIBS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF
make -s -C jansson-*/out install || { echo "jansson does not install"; exit 1; }

configure check-*/ -DBUILD_SHARED_LIBS=OFF -DCHECK_ENABLE_SUBUNIT=OFF -DBUILD_TESTING=OFF -DHAVE_SUBUNIT=0
make -s -C check-*/out check install || { echo "check does not install"; exit 1; }
# Debian names a second library, with position-independent code, in the file for pkg-config.
sed -i 's/-lcheck_pic/-lcheck/' /musl/lib/pkgconfig/check.pc

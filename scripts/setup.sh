#!/usr/bin/env bash
# Makes a Debian or Ubuntu machine able to build and run Sublane: a C linker, the Vulkan loader and, where no GPU driver is found,
# software Vulkan. Says what it installs; does and says nothing when nothing is missing. Run as root or as a user with sudo.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

if ! has cargo; then
  say "cargo is not on the PATH. Install Rust with rustup (https://rustup.rs), or open a new shell if it is installed, and run this again."
  exit 1
fi

# Vulkan is only looked for where it is the way to a GPU.
vulkan=yes
[ "$(uname -s)" = Linux ] || vulkan=no

has_loader() {
  { /sbin/ldconfig -p 2>/dev/null || ldconfig -p 2>/dev/null || true; } | grep -q 'libvulkan\.so\.1'
}

# A driver counts if the user names one, if it runs on the processor, or if the machine shows a GPU for it to drive.
has_driver() {
  [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] || return 0
  local manifests=() folder manifest
  for folder in /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d "${XDG_DATA_HOME:-${HOME:-}/.local/share}/vulkan/icd.d"; do
    for manifest in "$folder"/*.json; do
      [ -e "$manifest" ] && manifests+=("$manifest")
    done
  done
  [ "${#manifests[@]}" -gt 0 ] || return 1
  case "${manifests[*]}" in *lvp_icd* | *swiftshader*) return 0 ;; esac
  compgen -G '/dev/dri/renderD*' >/dev/null || compgen -G '/dev/nvidia[0-9]*' >/dev/null || [ -e /dev/dxg ]
}

packages=()
if ! has cc; then
  say "no C linker is installed; Rust needs one"
  packages+=(gcc libc6-dev)
fi
if [ "$vulkan" = yes ] && ! has_loader; then
  say "the Vulkan loader is not installed"
  packages+=(libvulkan1)
fi
if [ "$vulkan" = yes ] && ! has_driver; then
  say "no usable Vulkan driver is installed; software Vulkan will do"
  packages+=(mesa-vulkan-drivers)
fi
[ "${#packages[@]}" -gt 0 ] || exit 0

if ! has apt-get; then
  say "this script installs with apt-get, which is not here. Install what these Debian packages hold: ${packages[*]}"
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! has sudo; then
    say "run this as root, for there is no sudo, or let an administrator run: apt-get install ${packages[*]}"
    exit 1
  fi
  as_root=(sudo)
fi

install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null; }
say "installing ${packages[*]}"
# The package lists of a fresh machine are empty or old; they are fetched only if the first try fails.
if ! install 2>/dev/null; then
  say "fetching the package lists"
  "${as_root[@]}" apt-get update -qq >/dev/null
  install
fi
say "done"

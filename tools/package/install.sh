#!/bin/sh
# Installs the tarball of tensordiff into a folder, for one user; needs tar and, for a URL, curl.
#
#     install.sh --package FILE_OR_URL [--sha256 DIGEST] [--prefix FOLDER]
#
# FOLDER is ~/.local/tensordiff by default; the program is then FOLDER/bin/tensordiff.
set -eu

package="" digest="" prefix="${HOME:-/root}/.local/tensordiff"
while [ $# -gt 0 ]; do
  case "$1" in
    --package) package="$2" ;;
    --sha256) digest="$2" ;;
    --prefix) prefix="$2" ;;
    *) echo "install.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$package" ] || { echo "install.sh: --package needs a file or a URL" >&2; exit 2; }

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
case "$package" in
  http://* | https://*)
    curl -fsSL --retry 3 -o "$work/package.tar.gz" "$package" ||
      { echo "install.sh: cannot fetch $package" >&2; exit 1; } ;;
  *)
    [ -f "$package" ] || { echo "install.sh: no file named '$package'" >&2; exit 1; }
    cp "$package" "$work/package.tar.gz" ;;
esac
if [ -n "$digest" ]; then
  echo "$digest  $work/package.tar.gz" | sha256sum --quiet -c - ||
    { echo "install.sh: the checksum of $package is another one" >&2; exit 1; }
fi
mkdir "$work/new"
tar -xzf "$work/package.tar.gz" -C "$work/new" --strip-components=1
"$work/new/bin/tensordiff" --version | head -1  # Runs here, or the old one stays.
mkdir -p "$(dirname "$prefix")"
rm -rf "$prefix"
mv "$work/new" "$prefix"

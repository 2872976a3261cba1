#!/bin/sh
# Cuts Debian's fonts to the letters of the page: fonts-inter fonts-jetbrains-mono fonttools python3-brotli
set -eu
cd "$(dirname "$0")/src/fonts"
letters="U+0020-007E,U+00A0,U+00B1,U+00B7,U+00D7,U+0394,U+2013,U+2026,U+2190-2194,U+2212,U+221E,U+2248,U+2264,U+2265"
cut() {
  pyftsubset "/usr/share/fonts/$1" --unicodes="$letters" --flavor=woff2 --layout-features=kern \
    --no-hinting --desubroutinize --drop-tables+=GSUB,GDEF --output-file="$2"
}
cut opentype/inter/Inter-Regular.otf inter-400.woff2
cut opentype/inter/Inter-SemiBold.otf inter-600.woff2
cut truetype/jetbrains-mono/JetBrainsMono-Regular.ttf mono-400.woff2

#!/usr/bin/env python3
"""Writes the bill of materials (SPDX 2.3, JSON) of a built program.

    sbom.py BUILD_FOLDER PROGRAM OUTPUT

What is in the program is asked of those who know: Ninja has the command that linked it and the
headers that its sources include, dpkg which package each of these files is from, and
web/package-lock.json what the page is built from.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The headers of the compiler and of the system; what they leave in the program is told by the
# libraries that are linked.
TOOLCHAIN = re.compile(r"^(libc6-dev|linux-libc-dev|libstdc\+\+-\d+-dev|libgcc-\d+-dev)$")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked_files(build, program):
    """The libraries on the command that linked the program, and those that the loader adds."""
    command = output_of("ninja", "-C", str(build), "-t", "commands", "tensordiff").splitlines()[-1]
    named = re.findall(r"(/\S+\.(?:a|so)(?:\.[0-9.]+)?)(?=\s|$)", command)
    loaded = re.findall(r"=> (/\S+)", output_of("ldd", str(program)))
    # The compiler's own, where the program has them in it.
    if "-static-libstdc++" in command:
        named += [output_of("c++", f"-print-file-name={name}").strip()
                  for name in ("libstdc++.a", "libgcc.a", "libgcc_eh.a")]
    return [os.path.realpath(path) for path in [*named, *loaded] if os.path.exists(path)]


def included_files(build):
    text = output_of("ninja", "-C", str(build), "-t", "deps")
    return sorted({line.strip() for line in text.splitlines()
                   if line.startswith("    /usr/include/")})


def packages_of(files):
    """The names of Debian packages that these files are from; dpkg knows them by either path."""
    names = set()
    asked = [spelling for path in files for spelling in (path, path.removeprefix("/usr"))]
    found = subprocess.run(["dpkg", "-S", *asked], capture_output=True, text=True).stdout
    for line in found.splitlines():
        if ": " in line and not line.startswith("diversion"):
            names.update(each.strip().split(":")[0] for each in line.split(": ")[0].split(","))
    return names


def licences_of(package):
    """As the copyright file names them, if it is one that programs can read."""
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    text = path.read_text(errors="replace") if path.exists() else ""
    return sorted(set(re.findall(r"^License: *(\S.*)$", text, re.M)))


def debian_package(name):
    form = "${Version}\t${source:Package}\t${source:Version}\t${Homepage}"
    version, source, source_version, home = output_of("dpkg-query", "-W", "-f", form,
                                                      name).split("\n")[0].split("\t")
    licences = licences_of(name)
    return {
        "SPDXID": f"SPDXRef-deb-{re.sub('[^A-Za-z0-9.-]', '-', name)}",
        "name": name, "versionInfo": version, "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from {source} {source_version}",
        **({"homepage": home} if home.startswith("http") else {}),
        **({"licenseComments": "Debian's copyright file names: " + "; ".join(licences)}
           if licences else {}),
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch=amd64"}],
    }


def page_packages():
    """What is bundled into the page: the dependencies that are not for building only."""
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    for path, entry in sorted(lock["packages"].items()):
        name = path.removeprefix("node_modules/")
        if path and not entry.get("dev") and "node_modules/" not in name:
            yield {
                "SPDXID": f"SPDXRef-npm-{re.sub('[^A-Za-z0-9.-]', '-', name)}",
                "name": name, "versionInfo": entry["version"], "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
                "licenseDeclared": entry.get("license", "NOASSERTION"),
                "copyrightText": "NOASSERTION",
                "externalRefs": [{
                    "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                    "referenceLocator": f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"}],
            }


def document(version, program, parts):
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ",
                         time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
    ours = {
        "SPDXID": "SPDXRef-tensordiff", "name": "tensordiff", "versionInfo": version,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
    }
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tensordiff-{version}",
        "documentNamespace": f"urn:tensordiff:{version}:{digest}",
        "creationInfo": {"created": when, "creators": ["Tool: tools/package/sbom.py"]},
        "packages": [ours, *parts],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": "SPDXRef-tensordiff"},
            *({"spdxElementId": "SPDXRef-tensordiff", "relationshipType": "DEPENDS_ON",
               "relatedSpdxElement": part["SPDXID"]} for part in parts)],
    }


def main():
    build, program, output = (pathlib.Path(word) for word in sys.argv[1:4])
    version = re.search(r"project\(tensordiff VERSION ([0-9.]+)",
                        (ROOT / "CMakeLists.txt").read_text())[1]
    headers = {name for name in packages_of(included_files(build)) if not TOOLCHAIN.match(name)}
    names = headers | packages_of(linked_files(build, program))
    parts = [debian_package(name) for name in sorted(names)]
    parts += page_packages()
    output.write_text(json.dumps(document(version, program, parts), indent=1) + "\n")


if __name__ == "__main__":
    main()

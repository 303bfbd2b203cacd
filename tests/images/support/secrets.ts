/** Where secrets of the containers are, and where they must not be. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Compose } from "@svc/test-kit/containers/compose";

/** Where a volume lies on the host. */
const placeOf = ({ podman, project }: Compose, volume: string): string =>
  podman("volume", "inspect", "--format", "{{.Mountpoint}}", `${project}_${volume}`);

/** The secrets that the first container made, by name. Its public key is none. */
export function secretsOf(compose: Compose): Record<string, string> {
  const lines = readFileSync(join(placeOf(compose, "secrets-init"), "secrets.env"), "utf8")
    .trim()
    .split("\n");
  const pairs = lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries(pairs.filter(([name]) => !name?.endsWith("PUBLIC_KEY")));
}

/** Owner, group and mode of what a container is given, and its text. */
export function givenTo(compose: Compose, service: string): { owner: string; text: string } {
  const path = join(placeOf(compose, `secrets-${service}`), "environment");
  const { uid, gid, mode } = statSync(path);
  return { owner: `${uid}:${gid} ${(mode & 0o7777).toString(8)}`, text: readFileSync(path, "utf8") };
}

/** Names of files that hold secrets or the history of the sources, and private keys in any file. */
const SUSPICIOUS = `
cd "$(podman image mount "$1")" || exit 1
find . -xdev \\( -name '.git' -o -name '.npmrc' -o -name '.netrc' -o -name 'secrets.env' -o -name 'api-keys.jsonl' \\
  -o -name 'id_rsa' -o -name 'id_ed25519' -o -path './root/.ssh' -o -path './secrets/*/*' -o -path './keys/*' \\) -print
grep -rlazP --exclude-dir=proc -e '-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\\r?\\n[A-Za-z0-9+/=]{40}' . 2>/dev/null
cd / && podman image unmount "$1" >/dev/null
`;

/** Of an image, as far as its files are seen in the end. */
export function suspiciousFiles({ sh }: Compose, image: string): string[] {
  return sh(SUSPICIOUS, image)
    .split("\n")
    .filter((line) => line !== "");
}

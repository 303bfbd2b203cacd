/** Where secrets of the containers are, and where they must not be. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Compose } from "@svc/test-kit/containers/compose";

/** Where a volume lies on the host. */
const placeOf = ({ podman, project }: Compose, volume: string): string =>
  podman("volume", "inspect", "--format", "{{.Mountpoint}}", `${project}_${volume}`);

/** The secrets that the first container made, by name. Its public keys are none. */
export function secretsOf(compose: Compose): Record<string, string> {
  const text = readFileSync(join(placeOf(compose, "secrets-init"), "secrets.env"), "utf8");
  const pairs = text
    .trim()
    .split("\n")
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries(pairs.filter(([name]) => !name?.endsWith("PUBLIC_KEY")));
}

/** Owner, group and mode of what a container is given, and its text. */
export function givenTo(compose: Compose, service: string): { owner: string; text: string } {
  const path = join(placeOf(compose, `secrets-${service}`), "environment");
  const { uid, gid, mode } = statSync(path);
  return { owner: `${uid}:${gid} ${(mode & 0o7777).toString(8)}`, text: readFileSync(path, "utf8") };
}

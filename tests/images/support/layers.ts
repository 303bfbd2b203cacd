/** What is in an image, layer by layer: what a later layer removes is still in the one before. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Podman } from "@svc/test-kit/containers/podman";

/** Names that hold credentials, or the history of the sources. */
const SUSPICIOUS =
  /(^|\/)(\.git|\.npmrc|\.netrc|\.docker|\.ssh|\.aws|\.env|secrets\.env|id_rsa|id_ed25519)(\/|$)|^(secrets|keys)\/[^/]+\/.|^keys\/./;
/** In any file: private keys with a body. */
const PRIVATE_KEY = "-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\\r?\\n[A-Za-z0-9+/=]{40}";

export interface Layer {
  /** Paths without a slash at the beginning. */
  names: string[];
  /** Of files with one of the texts, or with a private key. */
  suspicious: string[];
}

/** `texts`: what no file may hold. */
export function layersOf({ podman }: Podman, image: string, texts: readonly string[]): Layer[] {
  const folder = mkdtempSync(join(tmpdir(), "svc-layers-"));
  const tar = (...args: string[]) =>
    execFileSync("tar", ["-C", folder, ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
  try {
    podman("save", "--quiet", "--format", "docker-archive", "--output", join(folder, "image.tar"), image);
    tar("-xf", "image.tar");
    const [manifest] = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as {
      Layers: string[];
    }[];
    return (manifest?.Layers ?? []).map((layer) => {
      const names = tar("-tf", layer).split("\n");
      const found = texts.filter((text) => has(join(folder, layer), ["-F", "-e", text]));
      if (has(join(folder, layer), ["-z", "-P", "-e", PRIVATE_KEY])) found.push("a private key");
      return { names, suspicious: [...names.filter((name) => SUSPICIOUS.test(name)), ...found] };
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function has(file: string, pattern: readonly string[]): boolean {
  try {
    execFileSync("grep", ["-a", "-q", ...pattern, file]);
    return true;
  } catch (error) {
    if ((error as { status?: number }).status === 1) return false;
    throw error;
  }
}

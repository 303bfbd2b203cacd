/**
 * Objects against the published schemas of Kubernetes, KEDA and cert-manager (npm packages made of their OpenAPI documents), in two ways: the compiled
 * JSON schemas refuse wrong values, and the types made of the same documents refuse fields that do not exist, which the schemas let pass.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "@svc/cli/instance";
import { FOLDER } from "./kubectl.ts";
import type { KubeObject } from "./objects.ts";

const PACKAGES: readonly [group: RegExp, name: string][] = [
  [/^keda\.sh\//, "@kubernetes-models/keda"],
  [/^cert-manager\.io\//, "@kubernetes-models/cert-manager"],
  [/^(v1|(apps|policy|autoscaling|networking\.k8s\.io)\/v\d)$/, "kubernetes-models"],
];

interface Model {
  validate: () => void;
}

/** The module of a kind. Throws where no package knows it. */
function moduleOf({ apiVersion, kind }: KubeObject): string {
  const [, name] = PACKAGES.find(([group]) => group.test(apiVersion)) ?? [];
  const path = `${name}/${apiVersion}/${kind}`;
  if (name === undefined || !existsSync(join(FOLDER, "node_modules", `${path}.js`)))
    throw new Error(`there is no schema of ${apiVersion} ${kind}`);
  return path;
}

/** What is wrong with the values of an object; undefined where nothing is. */
export async function wrongValues(object: KubeObject): Promise<string | undefined> {
  const file = pathToFileURL(join(FOLDER, "node_modules", `${moduleOf(object)}.js`)).href;
  const models: Record<string, new (data: KubeObject) => Model> = await import(/* @vite-ignore */ file);
  const Kind = models[object.kind];
  if (Kind === undefined) throw new Error(`${file} has no ${object.kind}`);
  try {
    new Kind(object).validate();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** What the compiler says of fields and values that the types do not have; empty where all is well. */
export function unknownFields(objects: readonly KubeObject[]): string {
  const parent = join(FOLDER, "node_modules/.strict");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "objects-"));
  try {
    const lines = objects.map((object, at) => {
      const type = `I${object.kind}`;
      return `import type { ${type} as T${at} } from "${moduleOf(object)}";
export const o${at} = ${JSON.stringify(object)} satisfies T${at};`;
    });
    writeFileSync(join(folder, "objects.ts"), lines.join("\n"));
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--ignoreConfig"];
    const { stdout, status } = spawnSync(
      join(ROOT, "node_modules/.bin/tsc"),
      [...options, join(folder, "objects.ts")],
      { encoding: "utf8" },
    );
    if (status === 0) return "";
    return stdout || `tsc ended with ${status}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The Secrets that an operator makes with the commands of docs/kubernetes.md. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { parseAllDocuments } from "yaml";
import { KUBECTL } from "./kubectl.ts";

interface Secret {
  metadata: { name: string; namespace: string };
  data: Record<string, string>;
}

/** By `namespace/name`, their values. */
export const documentedSecrets = () => secretsOf("Secrets", () => undefined);

/** The same of the commands for API keys, and the file that they leave behind as its mode is. */
export function documentedApiKeys(): { keys: string; mode: number } {
  const left = { mode: 0 };
  const secrets = secretsOf("API keys", (folder) => {
    left.mode = statSync(join(folder, "api-keys.jsonl")).mode & 0o777;
  });
  return { ...left, keys: secrets.get("svc-control/svc-api-keys")?.["api-keys.jsonl"] ?? "" };
}

/** Runs the commands of a section as they stand there; kubectl prints what it would make. */
function secretsOf(section: string, look: (folder: string) => void): Map<string, Record<string, string>> {
  const page = readFileSync(join(ROOT, "docs/kubernetes.md"), "utf8");
  const [, commands] =
    new RegExp(`^### ${section}\n[\\s\\S]*?^\`\`\`sh\n([\\s\\S]*?)^\`\`\``, "m").exec(page) ?? [];
  if (commands === undefined) throw new Error(`docs/kubernetes.md has no commands under ${section}`);
  const folder = mkdtempSync(join(tmpdir(), "svc-secrets-"));
  try {
    const made = join(folder, "made.yaml");
    writeFileSync(
      join(folder, "kubectl"),
      `#!/bin/sh\n"${KUBECTL}" "$@" --dry-run=client -o yaml >> "${made}" && echo --- >> "${made}"\n`,
    );
    chmodSync(join(folder, "kubectl"), 0o755);
    const PATH = `${folder}:${process.env.PATH}`;
    symlinkSync(join(ROOT, "svc"), join(folder, "svc"));
    const env = { ...process.env, PATH, SVC_DATA_DIR: join(folder, "data") };
    execFileSync("bash", ["-euc", commands], { cwd: folder, env, stdio: "pipe" });
    look(folder);
    const secrets = parseAllDocuments(readFileSync(made, "utf8"))
      .map((document) => document.toJS() as Secret | null)
      .filter((secret) => secret !== null);
    return new Map(
      secrets.map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, decoded(data)]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const decoded = (data: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(data).map(([key, text]) => [key, Buffer.from(text, "base64").toString()]),
  );

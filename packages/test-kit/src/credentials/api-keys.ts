/** API keys of the test, and their file in a folder of its own. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiKeyRecord, apiKeyDigest, formatApiKeys } from "@svc/contracts";

export const newApiKey = () => `svc_${randomBytes(32).toString("base64url")}`;

/** A right record of the key, changed as told. */
export function apiKeyRecord(key: string, change: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  return {
    id: `id-${apiKeyDigest(key).slice(0, 8)}`,
    name: "test",
    sha256: apiKeyDigest(key),
    tenant: "t1",
    user: "u1",
    created_at: "2026-11-24T10:00:00Z",
    ...change,
  };
}

export interface ApiKeysFile {
  path: string;
  folder: string;
  /** Replaces the file whole, as ./svc key does. */
  put: (records: readonly ApiKeyRecord[]) => void;
  remove: () => void;
}

/** The file is not there before it is put. */
export function apiKeysFile(): ApiKeysFile {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-api-keys-"));
  const path = join(folder, "api-keys.jsonl");
  return {
    path,
    folder,
    put: (records) => {
      writeFileSync(`${path}.new`, formatApiKeys(records), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}

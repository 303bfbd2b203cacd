/** When a manifest is let in, by clocks that are set. */
import { generateKeyPairSync } from "node:crypto";
import { parseSigningKey, signManifest } from "@svc/capabilities";
import { MANIFEST_HEADER, newId, ServiceError } from "@svc/contracts";
import { ManifestVerifier } from "@svc/runner/admission/manifest";
import { createLog, loadConfig } from "@svc/service-kit";
import { thrown } from "@svc/test-kit/thrown";
import { afterEach, expect, it, vi } from "vitest";

const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const key = parseSigningKey(privateKey);
const config = loadConfig("runner", {
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: publicKey,
  LOG_LEVEL: "fatal",
});
const AN_HOUR = 3600;
const scope = {
  tenant_id: "t",
  user_id: "u",
  session_key: "s",
  input_files: [],
  read_sessions: [],
  output_session_id: "o",
  max_upload_bytes: 0,
  max_output_files: 0,
  max_requests: 0,
  max_tool_calls: 0,
};

const real = Date.now;
afterEach(() => vi.restoreAllMocks());
const setClock = (seconds: number) => vi.spyOn(Date, "now").mockImplementation(() => real() + seconds * 1000);
const now = () => Math.floor(Date.now() / 1000);

/** Presents requests that end a program, which have no body and no grant. */
async function verifier() {
  const admission = new ManifestVerifier(config, createLog("runner", config));
  await admission.opens();
  return (manifest: string, execution: string) => {
    const headers = { [MANIFEST_HEADER]: manifest };
    const refusal = thrown(ServiceError, () =>
      admission.admitDiscard({ headers, body: undefined, requestId: "r" }, execution),
    );
    return refusal === undefined ? "let in" : refusal.code;
  };
}

function signed(execution: string, at = now()): string {
  const bound = { body: "{}", grant: "" };
  return signManifest(key, { ...scope, exec_id: execution }, bound, { now: at, ttl: 300, toolSocket: true });
}

it("a clock that was ahead at the start and is set back keeps nothing out", async () => {
  const present = await verifier();
  const execution = newId();
  setClock(-AN_HOUR);
  expect(present(signed(execution), execution)).toBe("let in");
  const started = now() - Math.floor(performance.now() / 1000);
  expect(present(signed(execution, started - 1), execution)).toBe("starting_up");
});

it("a clock that is set ahead and back again lets no manifest in twice", async () => {
  const present = await verifier();
  const execution = newId();
  const manifest = signed(execution);
  expect(present(manifest, execution)).toBe("let in");
  setClock(AN_HOUR);
  expect(present(signed(execution), execution)).toBe("let in");
  setClock(0);
  expect(present(manifest, execution)).toBe("manifest_refused");
});

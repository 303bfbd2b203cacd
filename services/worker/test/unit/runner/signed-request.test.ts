import { generateKeyPairSync } from "node:crypto";
import {
  canonicalJson,
  checkBinding,
  openManifest,
  parseSigningKey,
  parseVerifyingKeys,
} from "@svc/capabilities";
import { newId } from "@svc/contracts";
import { unsealedGrantOf } from "@svc/test-kit/components/messages";
import { discardManifest } from "@svc/worker/runner/discard-request";
import { requestSigner } from "@svc/worker/runner/signed-request";
import { describe, expect, it } from "vitest";

const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const sign = requestSigner(parseSigningKey(privateKey), 300);
const grant = unsealedGrantOf(newId());
const request = {
  language: "python",
  stdin: undefined,
  files: [{ name: "main.py", content: "print('}\u2028🎉')" }],
};

describe("a signed request", () => {
  it("is the request with grant and manifest, and the manifest fits what a receiver reads", () => {
    const { egress_grant, execution_manifest, ...rest } = JSON.parse(sign(request, grant));
    expect(rest).toEqual(JSON.parse(JSON.stringify(request)));
    expect(egress_grant).toBe("ceg1.x.y.z");
    const now = Math.floor(Date.now() / 1000);
    const { claims } = openManifest(parseVerifyingKeys(publicKey), execution_manifest, now);
    expect(() => checkBinding(claims, { body: canonicalJson(rest), grant: egress_grant })).not.toThrow();
    expect(claims.exp - claims.iat).toBe(300);
  });

  it("is signed anew each time", () => {
    expect(sign(request, grant)).not.toBe(sign(request, grant));
  });
});

describe("tools", () => {
  const keys = parseVerifyingKeys(publicKey);
  const now = () => Math.floor(Date.now() / 1000);
  const claimsOf = (body: string) => openManifest(keys, JSON.parse(body).execution_manifest, now()).claims;

  it("are allowed by the manifest of a program that has them, and of no other", () => {
    expect(claimsOf(sign(request, grant)).tool_call_socket).toBe(false);
    expect(claimsOf(sign(request, grant, { toolSocket: true })).tool_call_socket).toBe(true);
  });

  it("end with a manifest that names the execution, and fits no request that runs anything", () => {
    const id = newId();
    const { claims } = openManifest(keys, discardManifest(parseSigningKey(privateKey), 300, id), now());
    expect(claims).toMatchObject({ exec_id: id, tool_call_socket: true, max_requests: 0, input_files: [] });
    expect(() => checkBinding(claims, { body: "{}", grant: "" })).not.toThrow();
    expect(() => checkBinding(claims, { body: canonicalJson(request), grant: "" })).toThrow();
  });
});

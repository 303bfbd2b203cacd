/** The runner lets in what a worker vouched for, once, and nothing else: real runner, jail, gateway and storage. */
import { canonicalJson, type SigningKey, signManifest } from "@svc/capabilities";
import type { ExecuteResponse, ManifestScope, RegisteredGrant } from "@svc/contracts";
import type { Answer, Call } from "@svc/test-kit/components/gateway";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newKeys, requestOf, startSystemOfRunner } from "../support/runner.ts";

type SystemOfRunner = Awaited<ReturnType<typeof startSystemOfRunner>>;
type Request = ReturnType<typeof requestOf> & Record<string, unknown>;

let made: SystemOfRunner;
let call: (call: Call) => Promise<Answer>;
let grant: RegisteredGrant;

beforeAll(async () => {
  made = await startSystemOfRunner();
  call = await made.startRunner({ SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: made.keys.publicKey });
  const session = await made.gateway.upload("a.txt", "the first\n");
  grant = await made.gateway.register([session, await made.gateway.upload("b.txt", "the second\n")]);
});
afterAll(() => made?.stop());

interface Signing {
  key: SigningKey;
  now: number;
  ttl: number;
  scope: Partial<ManifestScope>;
  body: object;
  grant: string;
}

const seconds = () => Math.floor(Date.now() / 1000);
const request = (): Request => requestOf(grant, "cat a.txt b.txt; echo made > out.txt");

function manifestFor(body: object, change: Partial<Signing> = {}): string {
  return signManifest(
    change.key ?? made.keys.signing,
    { ...grant.executionManifestClaims, ...change.scope },
    { body: canonicalJson(change.body ?? body), grant: change.grant ?? grant.egressGrantToken },
    { now: change.now ?? seconds(), ttl: change.ttl ?? 300 },
  );
}

const post = (body: unknown, headers: Record<string, string> = {}, path = "/execute") =>
  call({
    method: "POST",
    path,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const signed = (body: Request, change?: Partial<Signing>) => ({
  ...body,
  egress_grant: grant.egressGrantToken,
  execution_manifest: manifestFor(body, change),
});

async function refusal(body: unknown, headers?: Record<string, string>) {
  const answer = await post(body, headers);
  const { error, reason } = answer.json();
  return reason === undefined ? [answer.status, error] : [answer.status, error, reason];
}
const refused = (reason: string) => [403, "manifest_refused", reason];

describe("a signed request", () => {
  it.each(["/execute", "/api/v2/execute"])(
    "runs on %s, reads its inputs and writes its output",
    async (path) => {
      const answer = await post(signed(request()), {}, path);
      expect(answer.status, answer.bytes.toString()).toBe(200);
      const { stdout, files } = answer.json() as unknown as ExecuteResponse;
      expect(stdout).toBe("the first\nthe second\n");
      const output = files.find(({ name }) => name === "out.txt");
      expect(output?.storage_session_id).toBe(grant.payload.output_session_id);
    },
  );

  it("has a body of JSON, or is told what it has", async () => {
    const answer = await post(signed(request()), { "content-type": "text/plain" });
    expect([answer.status, answer.json()]).toMatchObject([
      415,
      { error: "invalid_content_type", message: "Send Content-Type: application/json (got text/plain)." },
    ]);
  });

  it("may carry manifest and grant in headers instead, or in both places alike", async () => {
    const small = await made.gateway.register([]);
    const body = requestOf(small, "echo ok");
    const manifest = () =>
      signManifest(
        made.keys.signing,
        small.executionManifestClaims,
        { body: canonicalJson(body), grant: small.egressGrantToken },
        { now: seconds(), ttl: 300 },
      );
    const inHeaders = (token: string) => ({
      "x-svc-execution-manifest": token,
      "x-svc-egress-grant": small.egressGrantToken,
    });
    expect((await post(body, inHeaders(manifest()))).json()).toMatchObject({ stdout: "ok\n" });
    const token = manifest();
    const both = { ...body, execution_manifest: token, egress_grant: small.egressGrantToken };
    expect((await post(both, inHeaders(token))).json()).toMatchObject({ stdout: "ok\n" });
    const differing = { ...body, execution_manifest: manifest(), egress_grant: small.egressGrantToken };
    expect(await refusal(differing, inHeaders(manifest()))).toEqual([400, "manifest_malformed"]);
    expect(await refusal({ ...body, execution_manifest: 7 }, inHeaders(manifest()))).toEqual([
      400,
      "manifest_malformed",
    ]);
  });

  it("is the same request when its fields come in another order", async () => {
    const shuffled = Object.fromEntries(Object.entries(signed(request())).reverse());
    expect((await post(shuffled)).status).toBe(200);
  });

  it("that is authentic and wrong is told what is wrong", async () => {
    const wrong = { ...request(), language: "cobol" };
    expect(await refusal(signed(wrong))).toEqual([400, "unsupported_language"]);
    expect(await refusal(signed({ ...request(), args: "x" } as never))).toEqual([400, "invalid_request"]);
  });
});

describe("a request is refused", () => {
  it("without a manifest, whatever else it says", async () => {
    for (const body of [request(), {}, [], 7, null, { execution_manifest: null, egress_grant: 7 }]) {
      expect(await refusal(body)).toEqual([401, "manifest_missing"]);
    }
    expect(await refusal({ ...request(), execution_manifest: "x" })).toEqual([400, "manifest_malformed"]);
  });

  it("before it is parsed, where it holds more values than a worker may sign", async () => {
    for (const path of ["/execute", "/api/v2/execute", "/api/v2/executions/x/resume"]) {
      const body = `[${"[],".repeat(3_000_000)}[]]`;
      const answer = await call({
        method: "POST",
        path,
        headers: { "content-type": "application/json" },
        body,
      });
      expect([answer.status, answer.json().error]).toEqual([400, "invalid_json"]);
    }
  });

  it("when it comes a second time", async () => {
    const body = signed(request());
    expect((await post(body)).status).toBe(200);
    expect(await refusal(body)).toEqual(refused("replayed"));
    expect(await refusal({ ...body, args: ["x"] })).toEqual(refused("replayed"));
  });

  it("when it comes twice at once: one of them runs", async () => {
    const body = signed(request());
    const answers = await Promise.all([post(body), post(body), post(body)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403]);
  });

  it("when someone else signed it", async () => {
    expect(await refusal(signed(request(), { key: newKeys().signing }))).toEqual(refused("bad_signature"));
  });

  it("too late and too early, with a tolerance of 30 seconds", async () => {
    expect(await refusal(signed(request(), { now: seconds() - 340 }))).toEqual(refused("expired"));
    expect(await refusal(signed(request(), { ttl: -40 }))).toEqual(refused("expired"));
    expect(await refusal(signed(request(), { now: seconds() + 40 }))).toEqual(refused("not_yet_valid"));
    for (const change of [{ ttl: -20 }, { now: seconds() + 20 }]) {
      expect((await post(signed(request(), change))).status).toBe(200);
    }
  });

  it("when it was signed before the runner started, also when nobody knows whether it was used", async () => {
    const body = signed(request());
    expect((await post(body)).status).toBe(200);
    const restarted = await made.startRunner({ SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: made.keys.publicKey });
    const again = (what: object) =>
      restarted({
        method: "POST",
        path: "/execute",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(what),
      });
    for (const what of [body, signed(request(), { now: seconds() - 200 })]) {
      const answer = await again(what);
      expect([answer.status, answer.json().error]).toEqual([503, "starting_up"]);
    }
    expect((await again(signed(request()))).status).toBe(200);
  });

  it("when any field of the body was added, changed or removed, known or not", async () => {
    const changes: object[] = [
      { args: ["x"] },
      { stdin: "x" },
      { stdin: null },
      { run_timeout: 1 },
      { env_vars: { A: "1" } },
      { unheard_of: 1 },
      { session_id: "other" },
      { session_id: undefined },
      { output_session_id: undefined },
      { files: request().files.toReversed() },
      { files: request().files.slice(0, 2) },
      { language: "python" },
    ];
    for (const change of changes) {
      expect(await refusal({ ...signed(request()), ...change }), JSON.stringify(change)).toEqual(
        refused("body_mismatch"),
      );
    }
  });

  it("with the grant of another execution, or none", async () => {
    const other = await made.gateway.register([]);
    for (const egress_grant of [other.egressGrantToken, undefined, null, ""]) {
      expect(await refusal({ ...signed(request()), egress_grant })).toEqual(refused("scope_mismatch"));
    }
  });

  it("when the signer did not enumerate what it fetches and writes", async () => {
    const { executionManifestClaims: stated } = grant;
    const other = (await made.gateway.register([await made.gateway.upload("c", "3")]))
      .executionManifestClaims;
    const scopes: Partial<ManifestScope>[] = [
      { input_files: stated.input_files.slice(1) },
      { input_files: [...stated.input_files, ...other.input_files] },
      { read_sessions: stated.read_sessions.slice(1) },
      { read_sessions: [...stated.read_sessions, ...other.read_sessions] },
      { output_session_id: other.output_session_id },
    ];
    for (const scope of scopes)
      expect(await refusal(signed(request(), { scope }))).toEqual(refused("scope_mismatch"));
  });

  it("and each refusal is counted", async () => {
    const counted = async () => {
      const { bytes } = await call({ method: "GET", path: "/metrics" });
      const line = /^svc_sandbox_executions_total\{language="unknown",outcome="manifest_error"\} (\d+)$/m;
      return Number(line.exec(bytes.toString())?.[1]);
    };
    const before = await counted();
    await post(request());
    expect(await counted()).toBe(before + 1);
  });
});

describe("keys", () => {
  it("may be several: the runner believes each signer", async () => {
    const next = newKeys();
    call = await made.startRunner({
      SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: `${made.keys.publicKey},${next.publicKey}`,
    });
    expect((await post(signed(request()))).status).toBe(200);
    expect((await post(signed(request(), { key: next.signing }))).status).toBe(200);
  });

  it("that are no public keys stop the runner", async () => {
    const start = (key: string) => made.startRunner({ SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: key });
    const secret = made.keys.signing.key.export({ format: "der", type: "pkcs8" }).toString("base64");
    for (const key of ["", "nonsense", secret]) await expect(start(key)).rejects.toThrow("did not start");
  });

  it("may be absent where unsigned requests are let in; then a signed one cannot be judged", async () => {
    call = await made.startRunner({ SANDBOX_REQUIRE_EGRESS_MANIFEST: "false" });
    const unsigned = { ...request(), egress_grant: grant.egressGrantToken };
    expect((await post(unsigned)).json()).toMatchObject({ stdout: "the first\nthe second\n" });
    expect(await refusal(signed(request()))).toEqual([500, "manifest_key_missing"]);
  });
});

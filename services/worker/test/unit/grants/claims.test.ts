import { deadlinesFor, grantClaimsSchema, type Job, type JobFile, newId } from "@svc/contracts";
import { loadConfig } from "@svc/service-kit";
import { jobOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { claimsOf } from "@svc/worker/grants/claims";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const config = loadConfig("worker", {
  SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "key",
});
const claims = (job: Job) => claimsOf(job, deadlinesFor(job.run_timeout, config), config);

describe("claimsOf", () => {
  it("states the execution, its principal, its one writable session and the default budgets", () => {
    const job = jobOf({ run_timeout: 60_000 });
    expect(claims(job)).toEqual({
      exec_id: job.execution_id,
      tenant_id: "tenant",
      user_id: "alice",
      session_key: "tenant:user:alice",
      input_files: [],
      read_sessions: [],
      output_session_id: job.session_id,
      max_upload_bytes: 500_000_000,
      max_output_files: 50,
      max_requests: 1000,
      max_tool_calls: 200,
      lifetime_seconds: 285 + 60,
    });
  });

  it("allows the snapshot of a run of a session, beyond the outputs", () => {
    const job = jobOf();
    const to = { id: newId(), storage_session_id: job.session_id };
    const run = { namespace: "n", hint: undefined, sessionId: newId(), to };
    const made = claimsOf(job, deadlinesFor(job.run_timeout, config), config, run);
    expect(made).toEqual({
      ...claims(job),
      snapshot_object_id: to.id,
      max_upload_bytes: 500_000_000 + 104_857_600,
    });
  });

  it("enumerates the inputs sorted by session, id and name, and each session once", () => {
    const ids = [newId(), newId(), newId()];
    const file = fc.record({
      id: fc.constantFrom(...ids),
      storage_session_id: fc.constantFrom(...ids),
      name: fc.constantFrom("a", "b", "a/b", "é"),
      kind: fc.constant("user" as const),
    });
    const key = (claim: { session_id: string; id: string; name: string }) =>
      `${claim.session_id} ${claim.id} ${claim.name}`;
    fc.assert(
      fc.property(fc.array(file, { maxLength: 20 }), (files) => {
        const { input_files, read_sessions } = claims(jobOf({ files }));
        const keys = input_files.map(key);
        expect(keys).toEqual([...keys].sort());
        expect(keys.toSorted()).toEqual(
          files
            .map(({ storage_session_id, ...rest }) => key({ ...rest, session_id: storage_session_id }))
            .sort(),
        );
        expect(read_sessions).toEqual([...new Set(files.map((each) => each.storage_session_id))].sort());
      }),
    );
  });

  it("fits the gateway's schema, also with all the inputs that are allowed", () => {
    const files = Array.from({ length: 256 }, (_, at): JobFile => {
      return { id: newId(), storage_session_id: newId(), name: `f${at}`, kind: "user" };
    });
    expect(grantClaimsSchema.safeParse(claims(jobOf({ files }))).success).toBe(true);
  });
});

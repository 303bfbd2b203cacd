/** Messages between components as tests send them; what a test does not name has a plain value. */
import { type Job, newId, type RegisteredGrant } from "@svc/contracts";

export function jobOf(change: Partial<Job> = {}): Job {
  return {
    v: 1,
    request_id: "request",
    execution_id: newId(),
    session_id: newId(),
    principal: { tenantId: "tenant", userId: "alice" },
    output_namespace: "tenant:user:alice",
    language: "python",
    version: "*",
    code: "",
    args: [],
    run_timeout: 1000,
    files: [],
    ...change,
  };
}

/** The next round of a paused program. */
export function resumeOf(change: Partial<Job> = {}): Job & { job_id: string } {
  const resume = { runner_url: "http://127.0.0.1:1", round: 2, answered_call_ids: ["call_001"] };
  return { ...jobOf({ resume, ...change }), job_id: `${newId()}.2.1` };
}

/** A grant that nobody sealed, for an execution without files. */
export function unsealedGrantOf(exec_id: string): RegisteredGrant {
  return {
    grant_id: newId(),
    egressGrantToken: "ceg1.x.y.z",
    payload: { session_id: "label", output_session_id: "write", files: [] },
    executionManifestClaims: {
      exec_id,
      tenant_id: "t",
      user_id: "u",
      session_key: "k",
      input_files: [],
      read_sessions: [],
      output_session_id: "write",
      max_upload_bytes: 1,
      max_output_files: 1,
      max_requests: 1,
      max_tool_calls: 1,
    },
  };
}

/** Grants for tests of the ledger. */

import { type Grant, issueGrant } from "@svc/capabilities";
import { type GrantClaims, newId } from "@svc/contracts";

export function grantWith(change: Partial<GrantClaims> = {}, now = Math.floor(Date.now() / 1000)): Grant {
  const claims: GrantClaims = {
    exec_id: newId(),
    tenant_id: "tenant",
    user_id: "user",
    session_key: "tenant:user:user",
    input_files: [],
    read_sessions: [],
    output_session_id: newId(),
    max_upload_bytes: 1000,
    max_output_files: 50,
    max_requests: 1000,
    max_tool_calls: 200,
    lifetime_seconds: 60,
    ...change,
  };
  return issueGrant(claims, now, 900);
}

/** The manifest of a request that ends a paused program: it names the execution and grants nothing. */
import { type SigningKey, signManifest } from "@svc/capabilities";

const NONE = "none";

export function discardManifest(key: SigningKey, ttlSeconds: number, executionId: string): string {
  const scope = {
    exec_id: executionId,
    tenant_id: NONE,
    user_id: NONE,
    session_key: NONE,
    input_files: [],
    read_sessions: [],
    output_session_id: NONE,
    max_upload_bytes: 0,
    max_output_files: 0,
    max_requests: 0,
    max_tool_calls: 0,
  };
  const now = Math.floor(Date.now() / 1000);
  return signManifest(key, scope, { body: "{}", grant: "" }, { now, ttl: ttlSeconds, toolSocket: true });
}

/** Variables that only the egress gateway reads. */
import { bool, count, ms, port, seconds, secret, text, url, type Variable, withNote } from "../types.ts";

export const EGRESS_GATEWAY = {
  EGRESS_GATEWAY_PORT: port(3190, "Port of the egress gateway."),
  EGRESS_GATEWAY_HOST: text("127.0.0.1", "Address that the egress gateway listens on."),
  EGRESS_GATEWAY_FILE_SERVER_URL: withNote(
    url("", "File server as the gateway reaches it."),
    "= FILE_SERVER_URL",
  ),
  EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: withNote(
    url("", "Tool call server as the gateway reaches it."),
    "= TOOL_CALL_SERVER_URL",
  ),
  EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: ms(
    25_000,
    "How long the file server and the tool call server may take to answer the gateway, and to store content twice as long; a call that waits for its result has TOOL_CALL_REQUEST_TIMEOUT besides. At most 29000: who asks the gateway waits for 30 s, and for content 60 s.",
    29_000,
  ),
  SVC_EGRESS_GRANT_SECRET: secret("Secret of egress grants; at least 32 bytes."),
  SVC_EGRESS_GRANT_SECRET_PREVIOUS: secret("Earlier grant secret that is still accepted."),
  SVC_EGRESS_LEDGER_REQUIRED: bool(true, "Refuse grants without a live ledger record."),
  SVC_EGRESS_LEDGER_TTL_GRACE_SECONDS: seconds(300, "How long a record outlives its grant."),
  SVC_EGRESS_LEDGER_MUTATION_CONNECTIONS: count(32, "Connections for ledger changes.", 1024),
} satisfies Record<string, Variable<unknown>>;
